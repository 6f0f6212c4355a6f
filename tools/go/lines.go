package echoless

import (
	"bytes"
	"errors"
	"io"
)

// An Observer is a Filter, a Shared, or a Thread of an Ordered.
type Observer interface {
	Observe(Keys) (Verdicts, error)
}

// A LineWriter passes on the lines that are no duplicates. Each Write judges the lines that it
// completes in one batch, so large writes (of io.Copy, or through a bufio.Writer) are fast.
type LineWriter struct {
	// Key returns the key of a line, which has no line feed; nil is the line itself. The key may be
	// a part of the line, else it must not change before the Write has ended. The line must not be
	// kept.
	Key func(line []byte) []byte

	output   io.Writer
	observer Observer
	// The beginning of a line whose end has not come.
	partial []byte
	keys    [][]byte
	lines   [][]byte
	fresh   []byte
	err     error
}

var errInterrupted = errors.New("echoless: an earlier call of the writer has not ended")

// NewLineWriter returns a writer that passes on the lines that the observer finds fresh.
func NewLineWriter(output io.Writer, observer Observer) *LineWriter {
	return &LineWriter{output: output, observer: observer}
}

// Write judges the lines that it completes, and keeps the rest for the next call. After an error
// every later call has the same error, and so it is after a panic of Key or of the output.
func (w *LineWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	// Until the lines are judged.
	w.err = errInterrupted
	rest := p
	if len(w.partial) > 0 {
		end := bytes.IndexByte(rest, '\n') + 1
		if end == 0 {
			w.partial, w.err = append(w.partial, rest...), nil
			return len(p), nil
		}
		w.partial = append(w.partial, rest[:end]...)
		w.add(w.partial, w.partial[:len(w.partial)-1])
		rest = rest[end:]
	}
	for {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			break
		}
		w.add(rest[:end+1], rest[:end])
		rest = rest[end+1:]
	}
	if err := w.judge(); err != nil {
		return 0, err
	}
	w.partial = append(w.partial[:0], rest...)
	return len(p), nil
}

// Flush judges a last line without a line feed. It is passed on without one.
func (w *LineWriter) Flush() error {
	if w.err != nil || len(w.partial) == 0 {
		return w.err
	}
	w.err = errInterrupted
	w.add(w.partial, w.partial)
	w.partial = w.partial[:0]
	return w.judge()
}

func (w *LineWriter) add(whole, line []byte) {
	key := line
	if w.Key != nil {
		key = w.Key(line)
	}
	w.lines, w.keys = append(w.lines, whole), append(w.keys, key)
}

// judge passes on those of the lines that are fresh.
func (w *LineWriter) judge() error {
	verdicts, err := w.observer.Observe(Bytes(w.keys))
	if err == nil {
		w.fresh = w.fresh[:0]
		for i := range verdicts.Fresh() {
			w.fresh = append(w.fresh, w.lines[i]...)
		}
		if len(w.fresh) > 0 {
			var n int
			n, err = w.output.Write(w.fresh)
			if err == nil && n != len(w.fresh) {
				err = io.ErrShortWrite
			}
		}
	}
	// They point into the memory of the caller.
	clear(w.lines)
	clear(w.keys)
	w.lines, w.keys, w.err = w.lines[:0], w.keys[:0], err
	return err
}

// A LineReader reads the lines of another reader that are no duplicates, as they come.
type LineReader struct {
	input  io.Reader
	writer *LineWriter
	chunk  []byte
	fresh  bytes.Buffer
	err    error
}

// NewLineReader returns a reader of the lines that the observer finds fresh. Key is as in
// LineWriter, and may be nil.
func NewLineReader(input io.Reader, observer Observer, key func(line []byte) []byte) *LineReader {
	r := &LineReader{input: input, chunk: make([]byte, 64<<10)}
	r.writer = NewLineWriter(&r.fresh, observer)
	r.writer.Key = key
	return r
}

// Read reads from the lines that are no duplicates.
func (r *LineReader) Read(p []byte) (int, error) {
	for empty := 0; r.fresh.Len() == 0 && r.err == nil && len(p) > 0; {
		n, err := r.input.Read(r.chunk)
		if n > 0 {
			empty = 0
		} else if empty++; empty == 100 && err == nil {
			err = io.ErrNoProgress
		}
		r.err = err
		_, failed := r.writer.Write(r.chunk[:n])
		if failed == nil && err == io.EOF {
			failed = r.writer.Flush()
		}
		if failed != nil {
			r.err = failed
		}
	}
	if r.fresh.Len() == 0 {
		return 0, r.err
	}
	return r.fresh.Read(p)
}
