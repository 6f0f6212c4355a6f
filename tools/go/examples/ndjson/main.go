// Command ndjson drops duplicate records from a stream of JSON lines, and keeps what it has seen in
// a file over restarts:
//
//	producer | ndjson -key user.id,time -state seen.state | consumer
//
// The key is the value of one or more fields, compared as JSON: the order of the members of an
// object and the escapes of a string make no difference. Lines that are not JSON, or lack a field,
// pass.
//
// The state is saved after the lines before it were written: at the end of the input, on an
// interrupt or SIGTERM, and after every -save lines. After a crash, the lines since then are fresh
// again, so a producer that sends them again loses none. After a signal, that goes for lines that
// were still in the pipe.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"echoless"
)

type config struct {
	fields [][]string
	spec   string
	state  string
	save   int
}

func main() {
	var c config
	fields := flag.String("key", "", "`fields` of the key, such as user.id,time (required)")
	flag.StringVar(&c.spec, "filter", "fingerprint:fpr=1e-8,memory=64MiB", "`specification` of a new filter")
	flag.StringVar(&c.state, "state", "", "`file` that keeps the filter over restarts")
	flag.IntVar(&c.save, "save", 1_000_000, "save the state after so many `lines`")
	flag.Parse()
	if *fields == "" || flag.NArg() > 0 || c.save < 1 {
		flag.Usage()
		os.Exit(2)
	}
	for _, field := range strings.Split(*fields, ",") {
		c.fields = append(c.fields, strings.Split(field, "."))
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := run(c, os.Stdin, os.Stdout, os.Stderr, signals); err != nil {
		fmt.Fprintln(os.Stderr, "ndjson:", err)
		os.Exit(1)
	}
}

// run passes on the fresh lines of the input until its end or a signal.
func run(c config, input io.Reader, output, log io.Writer, signals <-chan os.Signal) error {
	filter, err := open(c)
	if err != nil {
		return err
	}
	defer filter.Close()
	p := processor{config: c, filter: filter, output: output}
	batches := make(chan batch)
	done := make(chan struct{})
	defer close(done)
	go read(input, batches, done)
	for {
		select {
		case <-signals:
			return p.finish(log)
		case batch, more := <-batches:
			if !more {
				return p.finish(log)
			}
			if err := p.process(batch.lines); err != nil {
				return err
			}
			if batch.err != nil {
				return errors.Join(batch.err, p.finish(log))
			}
		}
	}
}

// open is the filter of the state, or a new one if there is none.
func open(c config) (*echoless.Filter, error) {
	if c.state != "" {
		filter, _, err := echoless.LoadFile(c.state)
		if !errors.Is(err, fs.ErrNotExist) {
			return filter, err
		}
	}
	return echoless.New(c.spec)
}

// A batch is lines with their ends, and the error behind them if the input failed.
type batch struct {
	lines [][]byte
	err   error
}

// read sends the lines of the input: many at a time if they are there, and each at once if not.
func read(input io.Reader, batches chan<- batch, done <-chan struct{}) {
	defer close(batches)
	reader := bufio.NewReaderSize(input, 1<<20)
	for end := false; !end; {
		var b batch
		for {
			line, err := reader.ReadBytes('\n')
			if len(line) > 0 {
				b.lines = append(b.lines, line)
			}
			end = err != nil
			if end && err != io.EOF {
				b.err = err
			}
			buffered, _ := reader.Peek(reader.Buffered())
			if end || len(b.lines) == 1024 || bytes.IndexByte(buffered, '\n') < 0 {
				break
			}
		}
		select {
		case batches <- b:
		case <-done:
			return
		}
	}
}

type processor struct {
	config
	filter *echoless.Filter
	output io.Writer
	// Lines that were read, those without a key, duplicates, and lines since the last save.
	lines, keyless, duplicates, unsaved int
}

func (p *processor) process(lines [][]byte) error {
	keys := make([][]byte, 0, len(lines))
	// The number of the key of each line, -1 without one.
	numbers := make([]int, len(lines))
	for i, line := range lines {
		if key, ok := keyOf(line, p.fields); ok {
			numbers[i] = len(keys)
			keys = append(keys, key)
		} else {
			numbers[i] = -1
			p.keyless++
		}
	}
	verdicts, err := p.filter.Observe(echoless.Bytes(keys))
	if err != nil {
		return err
	}
	var fresh bytes.Buffer
	for i, line := range lines {
		if numbers[i] < 0 || !verdicts.Duplicate(numbers[i]) {
			fresh.Write(line)
		}
	}
	if _, err := p.output.Write(fresh.Bytes()); err != nil {
		return err
	}
	p.lines += len(lines)
	p.duplicates += verdicts.Count()
	if p.unsaved += len(lines); p.unsaved >= p.save {
		return p.saveState()
	}
	return nil
}

func (p *processor) saveState() error {
	p.unsaved = 0
	if p.state == "" {
		return nil
	}
	return p.filter.SaveFile(p.state, nil)
}

func (p *processor) finish(log io.Writer) error {
	fmt.Fprintf(log, "%d lines, %d duplicates, %d without a key\n", p.lines, p.duplicates, p.keyless)
	return p.saveState()
}

// keyOf is the key of a line: the values of the fields in one form, as a JSON array.
func keyOf(line []byte, fields [][]string) ([]byte, bool) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	// Long ids keep all their digits.
	decoder.UseNumber()
	var record any
	if decoder.Decode(&record) != nil {
		return nil, false
	}
	values := make([]any, len(fields))
	for i, path := range fields {
		value := record
		for _, name := range path {
			members, _ := value.(map[string]any)
			member, found := members[name]
			if !found {
				return nil, false
			}
			value = member
		}
		values[i] = value
	}
	key, err := json.Marshal(values)
	return key, err == nil
}
