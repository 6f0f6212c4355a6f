package echoless

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// A filter of one line, which alone would be wrong about most keys, has the verdicts of a map.
func TestExactIsAMap(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "calls")
	exact := must(NewExact("fingerprint:memory=64", Seed(3)))
	seen := map[string]bool{}
	var saved map[string]bool
	random := rand.New(rand.NewPCG(1, 2))
	for step := range 40 {
		keys := make([]string, random.IntN(300))
		for i := range keys {
			keys[i] = fmt.Sprintf("call %d", random.IntN(2000))
		}
		verdicts := must(exact.Observe(Strings(keys)))
		for i, key := range keys {
			if verdicts.Duplicate(i) != seen[key] {
				t.Fatalf("step %d, key %d: %v", step, i, seen[key])
			}
			seen[key] = true
		}
		if report := must(exact.Report()); report.Fresh != uint64(len(seen)) {
			t.Fatalf("%d of %d keys", report.Fresh, len(seen))
		}
		switch step % 4 {
		case 1:
			if err := exact.SaveFile(folder, []byte{byte(step)}); err != nil {
				t.Fatal(err)
			}
			saved = map[string]bool{}
			for key := range seen {
				saved[key] = true
			}
		case 3:
			// What was observed since is gone.
			if _, _, err := LoadExact(folder, Seed(3)); !errors.Is(err, Busy) {
				t.Fatal(err)
			}
			if err := exact.Close(); err != nil {
				t.Fatal(err)
			}
			loaded, position, err := LoadExact(folder, Seed(3))
			if err != nil || position[0] != byte(step-2) {
				t.Fatal(position, err)
			}
			exact, seen = loaded, saved
		}
	}
	if err := exact.Clear(); !errors.Is(err, Unsupported) {
		t.Error(err)
	}
	exact.Close()
	if _, _, err := LoadExact(folder, Seed(4)); !errors.Is(err, StateMismatch) {
		t.Error(err)
	}
	// One that is lost is no first run.
	if err := os.Remove(filepath.Join(folder, "filter")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := LoadExact(folder, Seed(3)); !errors.Is(err, InvalidState) {
		t.Error(err)
	}
}

func TestExactSaysWhatIsWrong(t *testing.T) {
	exact := must(NewExact("fingerprint:memory=1MiB"))
	defer exact.Close()
	if _, err := exact.Observe(Hashes([]uint64{1})); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if _, err := NewExact("clocked:window=60,memory=1MiB"); !errors.Is(err, InvalidSpec) {
		t.Error(err)
	}
	for _, folder := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if _, _, err := LoadExact(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	others := t.TempDir()
	if err := os.WriteFile(filepath.Join(others, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := exact.SaveFile(others, nil); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if must(exact.Observe(Numbers([]uint64{1, 2, 1}))).Count() != 1 {
		t.Error("an error has changed the filter")
	}
	if err := exact.Clear(); err != nil {
		t.Fatal(err)
	}
	if must(exact.Contains(Numbers([]uint64{1, 2}))).Count() != 0 {
		t.Error("keys are left")
	}
}
