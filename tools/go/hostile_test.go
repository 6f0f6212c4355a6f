package echoless

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode"
)

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// ending is how a goroutine ended that ran a function.
func ending(run func()) (panicked any, returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		run()
		returned = true
	}()
	<-done
	return panicked, returned
}

// A stream may do anything, at any of its calls: the filter is as before, and later calls work.
func TestStreamsThatDoNotReturn(t *testing.T) {
	filter := newTestFilter(t, lines)
	must(filter.Observe(Numbers([]uint64{1, 2, 3})))
	var state bytes.Buffer
	if err := filter.Save(&state, []byte("position")); err != nil {
		t.Fatal(err)
	}
	for name, stop := range map[string]struct {
		run   func()
		panic any
	}{
		"panic":     {func() { panic("in the stream") }, "in the stream"},
		"nil panic": {func() { panic(nil) }, &runtime.PanicNilError{}},
		"Goexit":    {runtime.Goexit, nil},
	} {
		for at := range 3 {
			calls := 0
			step := func() {
				if calls == at {
					stop.run()
				}
				calls++
			}
			for way, run := range map[string]func(){
				"Save": func() {
					filter.Save(writerFunc(func(p []byte) (int, error) { step(); return len(p), nil }), nil)
				},
				"Load": func() {
					rest := bytes.NewReader(state.Bytes())
					Load([]io.Reader{readerFunc(func(p []byte) (int, error) {
						step()
						return rest.Read(p[:min(len(p), 10_000)])
					})})
				},
				// As a test that fails in its writer.
				"SaveLines": func() {
					filter.SaveLines(writerFunc(func(p []byte) (int, error) { step(); return len(p), nil }),
						0, 4096, nil)
				},
			} {
				calls = 0
				panicked, returned := ending(run)
				if _, ok := stop.panic.(error); ok {
					if _, ok := panicked.(*runtime.PanicNilError); !ok {
						t.Errorf("%s of %s %d: %v", name, way, at, panicked)
					}
				} else if panicked != stop.panic {
					t.Errorf("%s of %s %d: %v", name, way, at, panicked)
				}
				if returned {
					t.Errorf("%s of %s %d: the call has returned", name, way, at)
				}
				if verdicts, err := filter.Contains(Numbers([]uint64{1, 2, 3})); err != nil || verdicts.Count() != 3 {
					t.Fatalf("after %s of %s %d: %v", name, way, at, err)
				}
				if err := filter.Save(io.Discard, nil); err != nil {
					t.Fatalf("after %s of %s %d: %v", name, way, at, err)
				}
			}
		}
	}
}

// Streams that break their contract end in an error or a panic, and not in a filter that is locked.
func TestStreamsThatLie(t *testing.T) {
	filter := newTestFilter(t, lines)
	for _, n := range []int{-1, math.MinInt, 0, 1 << 40} {
		err := filter.Save(writerFunc(func([]byte) (int, error) { return n, nil }), nil)
		if !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("a write of %d bytes: %v", n, err)
		}
		ending(func() {
			loaded, _, err := Load([]io.Reader{readerFunc(func([]byte) (int, error) { return n, io.EOF })})
			if err == nil {
				loaded.Close()
				t.Errorf("a read of %d bytes", n)
			}
		})
	}
	for _, streams := range [][]io.Reader{{nil}, {bytes.NewReader(nil), nil}} {
		if _, returned := ending(func() { Load(streams) }); returned {
			t.Log("an error before the stream is used")
		}
	}
	ending(func() { filter.Save(nil, nil) })
	// The writer closes the filter that it saves.
	closing := must(New(lines))
	err := closing.Save(writerFunc(func(p []byte) (int, error) { closing.Close(); return len(p), nil }), nil)
	if err != nil && !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := closing.Close(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := filter.Save(io.Discard, nil); err != nil {
		t.Error(err)
	}
}

// A line whose Key or output did not return is judged by no later call.
func TestALineWriterThatWasInterruptedIsAnError(t *testing.T) {
	for name, stop := range map[string]func(){"panic": func() { panic(1) }, "Goexit": runtime.Goexit} {
		for _, inKey := range []bool{true, false} {
			filter := newTestFilter(t, lines)
			isStopped := true
			var output bytes.Buffer
			step := func() {
				if isStopped {
					stop()
				}
			}
			writer := NewLineWriter(writerFunc(func(p []byte) (int, error) {
				if !inKey {
					step()
				}
				return output.Write(p)
			}), filter)
			if inKey {
				writer.Key = func(line []byte) []byte { step(); return line }
			}
			ending(func() { writer.Write([]byte("a\nb\nc")) })
			isStopped = false
			for range 2 {
				if _, err := writer.Write([]byte("d\n")); !errors.Is(err, errInterrupted) {
					t.Errorf("%s: %v", name, err)
				}
				if err := writer.Flush(); !errors.Is(err, errInterrupted) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if output.Len() > 0 {
				t.Errorf("%s: %q", name, output.String())
			}
		}
	}
	short := NewLineWriter(writerFunc(func([]byte) (int, error) { return 1, nil }), newTestFilter(t, lines))
	if _, err := short.Write([]byte("a line\n")); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
	idle := NewLineReader(readerFunc(func([]byte) (int, error) { return 0, nil }), newTestFilter(t, lines), nil)
	if _, err := io.ReadAll(idle); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

// What a program passes is repeated in no text as it is.
func TestErrorTextsAreOneLine(t *testing.T) {
	const nasty = "a\nb\x1b[2J\u202ec\u2028d\u009b"
	filter := newTestFilter(t, lines)
	folder := filepath.Join(t.TempDir(), nasty)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(folder, "damaged")
	if err := os.WriteFile(damaged, []byte("no state"), 0o600); err != nil {
		t.Fatal(err)
	}
	failed := errors.New(nasty)
	errs := map[string]error{
		"spec":           must2(New(nasty)),
		"spec with NUL":  must2(New(nasty + "\x00")),
		"shared":         must2(NewShared(nasty)),
		"option":         must2(New("fingerprint:" + nasty + "=1")),
		"value":          must2(New("fingerprint:memory=" + nasty)),
		"packets":        must2(NewPacketKeys(Ethernet, PacketOptions{Ignore: nasty})),
		"save":           filter.SaveFile("/nowhere/"+nasty, nil),
		"writer":         filter.Save(writerFunc(func([]byte) (int, error) { return 0, failed }), nil),
		"invalid UTF-8":  must2(New("\xff" + nasty)),
		"path with NUL":  filter.SaveFile(nasty+"\x00", nil),
		"packets, NUL":   must2(NewPacketKeys(Ethernet, PacketOptions{From: nasty + "\x00"})),
		"load":           must3(LoadFile(damaged)),
		"load no file":   must3(LoadFile(folder + "/none")),
		"load a folder":  must3(LoadFile(folder)),
		"shared load":    must3(LoadSharedFile(damaged)),
		"shared no file": must3(LoadSharedFile(folder + "/none")),
	}
	for name, err := range errs {
		var typed *Error
		if !errors.As(err, &typed) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, character := range err.Error() {
			if unicode.IsControl(character) || unicode.Is(unicode.Bidi_Control, character) ||
				unicode.In(character, unicode.Zl, unicode.Zp) {
				t.Errorf("%s: %q", name, err.Error())
				break
			}
		}
		if strings.Contains(name, "no file") && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !errors.Is(errs["writer"], failed) {
		t.Error("the error of the writer is lost")
	}
}

func must3[A, B any](_ A, _ B, err error) error { return err }

func TestPackedKeysAreThoseOfByteSlices(t *testing.T) {
	texts := []string{"to", "be", "", "or", "not", "to", "be", ""}
	// As a slice of an Arrow array: the first offset is not 0, and there are bytes behind the last.
	column := []byte("before" + strings.Join(texts, "") + "behind")
	short, long := []int32{6}, []int64{6}
	for _, text := range texts {
		short = append(short, short[len(short)-1]+int32(len(text)))
		long = append(long, long[len(long)-1]+int64(len(text)))
	}
	filter := newTestFilter(t, lines)
	want := must(filter.Hash(Strings(texts)))
	for name, keys := range map[string]Keys{"32 bits": Packed(column, short), "64 bits": Packed(column, long)} {
		if hashes := must(filter.Hash(keys)); len(hashes) != len(want) {
			t.Errorf("%s: %d hashes", name, len(hashes))
		} else {
			for i := range want {
				if hashes[i] != want[i] {
					t.Errorf("%s: key %d has another hash", name, i)
				}
			}
		}
		must(0, filter.Clear())
		if verdicts := must(filter.Observe(keys)); verdicts.Count() != 3 || !verdicts.Duplicate(7) {
			t.Errorf("%s: %d duplicates", name, verdicts.Count())
		}
	}
	must(0, filter.Clear())
	for name, keys := range map[string]Keys{
		"none":       Packed[int32](column, nil),
		"too far":    Packed(column, []int32{0, 1, int32(len(column)) + 1}),
		"descending": Packed(column, []int32{0, 5, 4}),
		"negative":   Packed(column, []int32{-1, 5, 6}),
		"below":      Packed(column, []int64{0, 1, -1}),
		"behind":     Packed(column, []int64{0, math.MaxInt64, 5}),
		"no bytes":   Packed(nil, []int64{0, 1}),
		"no reader":  (*PacketKeys)(nil).Of(make([]Packet, 1)),
		"ticks":      Packed(column, short).At([]uint64{1}),
	} {
		if _, err := filter.Observe(keys); !errors.Is(err, InvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if verdicts, err := filter.Observe(Packed(nil, []int32{0})); err != nil || verdicts.Len() != 0 {
		t.Error(err)
	}
	if report := must(filter.Report()); report.Observed != 0 {
		t.Errorf("%d keys were judged", report.Observed)
	}
}

// A module of another program with this one in its vendor folder, far from the checkout, builds: only
// the library must be given.
func TestAVendoredModuleBuilds(t *testing.T) {
	flags := os.Getenv("CGO_LDFLAGS")
	if flags == "" {
		t.Skip("SKIPPED: CGO_LDFLAGS does not say where the library is")
	}
	here := must(os.Getwd())
	folder := t.TempDir()
	// A copy, which is removed: nothing in the vendor folder may need it.
	copied := filepath.Join(folder, "echoless")
	if err := os.CopyFS(copied, os.DirFS(here)); err != nil {
		t.Fatal(err)
	}
	// The packed module has the header in it.
	header := must(os.ReadFile(filepath.Join(here, "../capi/include/echoless.h")))
	if err := os.WriteFile(filepath.Join(copied, "echoless.h"), header, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "program")
	for name, text := range map[string]string{
		"go.mod": "module program\n\ngo 1.24\n\nrequire echoless v0.0.0\n\nreplace echoless => ../echoless\n",
		"main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t\"echoless\"\n)\n\nfunc main() {\n" +
			"\tfilter, err := echoless.New(\"fingerprint:fpr=1e-8,memory=1MiB\")\n" +
			"\tif err != nil {\n\t\tpanic(err)\n\t}\n" +
			"\tverdicts, err := filter.Observe(echoless.Strings([]string{\"a\", \"b\", \"a\"}))\n" +
			"\tfmt.Println(verdicts.Count(), err)\n}\n",
	} {
		path := filepath.Join(program, name)
		if err := errors.Join(os.MkdirAll(program, 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(arguments ...string) string {
		command := exec.Command("go", arguments...)
		command.Dir = program
		command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off")
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("go %v: %v\n%s", arguments, err, output)
		}
		return string(output)
	}
	run("mod", "vendor")
	if err := os.RemoveAll(copied); err != nil {
		t.Fatal(err)
	}
	if output := run("run", "-mod=vendor", "."); output != "1 <nil>\n" {
		t.Errorf("%q", output)
	}
	for _, name := range []string{"LICENSE-MIT", "LICENSE-APACHE"} {
		if _, err := os.Stat(filepath.Join(program, "vendor/echoless", name)); err != nil {
			t.Error(err)
		}
	}
}
