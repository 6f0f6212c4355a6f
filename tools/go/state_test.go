package echoless

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
)

// A call that must fail.
type wrongLoad struct {
	path    string
	options []Option
	is      error
}

// checkLoad loads a file that holds ids and the position "at 42", and files that are wrong.
func checkLoad[F interface {
	comparable
	Observe(Keys) (Verdicts, error)
	Close() error
}](t *testing.T, load func(string, ...Option) (F, []byte, error), path string, option Option, ids Keys, wrongs map[string]wrongLoad) {
	t.Helper()
	loaded, position, err := load(path, option)
	if err != nil || string(position) != "at 42" {
		t.Fatalf("%q, %v", position, err)
	}
	defer loaded.Close()
	if must(loaded.Observe(ids)).Count() != 3 {
		t.Error("keys are lost")
	}
	for name, wrong := range wrongs {
		if loaded, _, err := load(wrong.path, wrong.options...); loaded != *new(F) || !errors.Is(err, wrong.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "filter.state")
	secret := Secret([16]byte{1, 2, 3})
	filter := newTestFilter(t, lines, secret)
	ids := Numbers([]uint64{1, 2, 3})
	must(filter.Observe(ids))
	if err := filter.SaveFile(path, []byte("at 42")); err != nil {
		t.Fatal(err)
	}
	checkLoad(t, LoadFile, path, secret, ids, map[string]wrongLoad{
		"no secret": {path, nil, StateMismatch},
		"too large": {path, []Option{secret, MemoryLimit(1 << 19)}, InvalidSpec},
		"no file":   {path + "x", nil, fs.ErrNotExist},
		"no state":  {writeFile(t, []byte("something else")), nil, InvalidState},
		"truncated": {writeFile(t, must(os.ReadFile(path))[:5000]), []Option{secret}, InvalidState},
		"a folder":  {t.TempDir(), nil, IO},
	})
	if err := filter.SaveFile("/nowhere/at/all", nil); !errors.Is(err, IO) {
		t.Error(err)
	}
	if err := filter.SaveFile("a\x00b", nil); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
}

func TestStateFileOfAShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared.state")
	shared := must(NewShared("row2x32:memory=1MiB", Seed(3)))
	defer shared.Close()
	ids := Numbers([]uint64{1, 2, 3})
	must(shared.Observe(ids))
	if err := shared.SaveFile(path, []byte("at 42")); err != nil {
		t.Fatal(err)
	}
	checkLoad(t, LoadSharedFile, path, Seed(3), ids, map[string]wrongLoad{
		"other seed": {path, nil, StateMismatch},
		"too large":  {path, []Option{Seed(3), MemoryLimit(1 << 19)}, InvalidSpec},
		"no file":    {path + "x", nil, fs.ErrNotExist},
		"no state":   {writeFile(t, []byte("something else")), nil, InvalidState},
	})
	if _, _, err := LoadFile(path, Seed(3)); !errors.Is(err, StateMismatch) {
		t.Error(err)
	}
}

func writeFile(t *testing.T, content []byte) string {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStateStreamAndParts(t *testing.T) {
	filter := newTestFilter(t, "fingerprint:memory=64KiB")
	ids := make([]uint64, 1_000)
	for i := range ids {
		ids[i] = uint64(i)
	}
	must(filter.Observe(Numbers(ids)))
	long := bytes.Repeat([]byte("position"), 20_000)
	var whole, low, high bytes.Buffer
	all := must(filter.Lines())
	if all != (64<<10)/64 {
		t.Errorf("%d lines", all)
	}
	err := errors.Join(
		filter.Save(&whole, long),
		filter.SaveLines(&low, 0, all/4, []byte("a")),
		filter.SaveLines(&high, all/4, all, []byte("b")),
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, load := range map[string]struct {
		parts    []io.Reader
		position string
	}{
		"whole":        {[]io.Reader{bytes.NewReader(whole.Bytes())}, string(long)},
		"byte by byte": {[]io.Reader{&high, iotest.OneByteReader(bytes.NewReader(low.Bytes()))}, "ab"},
		"data and EOF": {[]io.Reader{iotest.DataErrReader(bytes.NewReader(whole.Bytes()))}, string(long)},
	} {
		loaded, position, err := Load(load.parts)
		if err != nil || string(position) != load.position {
			t.Fatalf("%s: %d bytes, %v", name, len(position), err)
		}
		if must(loaded.Contains(Numbers(ids))).Count() != len(ids) {
			t.Errorf("%s: keys are lost", name)
		}
		loaded.Close()
	}
	if _, _, err := Load([]io.Reader{bytes.NewReader(low.Bytes())}); !errors.Is(err, InvalidState) {
		t.Errorf("a part is missing: %v", err)
	}
	if _, _, err := Load(nil); !errors.Is(err, InvalidArgument) {
		t.Errorf("no part: %v", err)
	}
	if err := filter.SaveLines(io.Discard, 5, 5, nil); !errors.Is(err, InvalidSpec) {
		t.Errorf("no lines: %v", err)
	}
}

func TestErrorsAndPanicsOfStreamsComeBack(t *testing.T) {
	filter := newTestFilter(t, lines)
	full := errors.New("the disk is full")
	err := filter.Save(writerFunc(func([]byte) (int, error) { return 0, full }), nil)
	if !errors.Is(err, full) || !errors.Is(err, IO) {
		t.Error(err)
	}
	if err := filter.Save(writerFunc(func([]byte) (int, error) { return 0, nil }), nil); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
	if _, _, err := Load([]io.Reader{iotest.ErrReader(full)}); !errors.Is(err, full) {
		t.Error(err)
	}
	func() {
		defer func() {
			if recover() != "in the writer" {
				t.Error("the panic is lost")
			}
		}()
		filter.Save(writerFunc(func([]byte) (int, error) { panic("in the writer") }), nil)
	}()
	// The filter is as before.
	if err := filter.Save(io.Discard, nil); err != nil {
		t.Error(err)
	}
}
