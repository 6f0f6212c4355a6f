package echoless

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Lines with duplicates, and what remains of them.
func lineText(end string) (text, fresh string) {
	var all, once strings.Builder
	seen := make(map[int]bool)
	for i := range 10_000 {
		key := i * i % 3001
		line := fmt.Sprintf("%d %s\n", key, strings.Repeat("x", key%70))
		all.WriteString(line)
		if !seen[key] {
			once.WriteString(line)
		}
		seen[key] = true
	}
	return all.String() + end, once.String() + end
}

func TestLineWriter(t *testing.T) {
	text, want := lineText("the last line has no end")
	for _, size := range []int{1, 7, 4096, len(text)} {
		var output bytes.Buffer
		writer := NewLineWriter(&output, newTestFilter(t, lines))
		for rest := []byte(text); len(rest) > 0; {
			// Memory that is used again after the call.
			chunk := bytes.Clone(rest[:min(size, len(rest))])
			if n, err := writer.Write(chunk); n != len(chunk) || err != nil {
				t.Fatal(n, err)
			}
			rest = rest[len(chunk):]
			clear(chunk)
		}
		if err := writer.Flush(); err != nil {
			t.Fatal(err)
		}
		if output.String() != want {
			t.Errorf("in pieces of %d bytes: other lines", size)
		}
	}
}

func TestLineReader(t *testing.T) {
	text, want := lineText("")
	shared := must(NewShared("row2x32:memory=1MiB"))
	defer shared.Close()
	for name, observer := range map[string]Observer{
		"filter": newTestFilter(t, lines), "shared": shared,
	} {
		input := iotest.HalfReader(strings.NewReader(text))
		output, err := io.ReadAll(NewLineReader(input, observer, nil))
		if err != nil || string(output) != want {
			t.Errorf("%s: other lines, %v", name, err)
		}
	}
	reader := NewLineReader(strings.NewReader("a 1\nb 2\na 3"), newTestFilter(t, lines),
		func(line []byte) []byte { return line[:1] })
	if err := iotest.TestReader(reader, []byte("a 1\nb 2\n")); err != nil {
		t.Error(err)
	}
	broken := errors.New("broken")
	reader = NewLineReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)),
		newTestFilter(t, lines), nil)
	if output, err := io.ReadAll(reader); string(output) != "a\n" || !errors.Is(err, broken) {
		t.Errorf("%q, %v", output, err)
	}
}

func TestLineWriterKeepsItsError(t *testing.T) {
	full := errors.New("full")
	writer := NewLineWriter(writerFunc(func([]byte) (int, error) { return 0, full }),
		newTestFilter(t, lines))
	for range 2 {
		if _, err := writer.Write([]byte("a\nb")); !errors.Is(err, full) {
			t.Error(err)
		}
	}
	if err := writer.Flush(); !errors.Is(err, full) {
		t.Error(err)
	}
	closed := must(New(lines))
	closed.Close()
	if _, err := NewLineWriter(io.Discard, closed).Write([]byte("a\n")); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
