package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"echoless"
)

// The tests run the command itself: this program, with a variable that says so.
func TestMain(m *testing.M) {
	if os.Getenv("ECHOLESS_NDJSON") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func command(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "ECHOLESS_NDJSON=1")
	return c
}

func output(t *testing.T, input string, args ...string) string {
	t.Helper()
	c := command(args...)
	c.Stdin = strings.NewReader(input)
	var errors bytes.Buffer
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errors.String())
	}
	return string(out)
}

func records(from, to int) string {
	var text strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&text, "{\"user\":{\"id\":%d},\"n\":\"%d\"}\n", i, from)
	}
	return text.String()
}

func TestDropsDuplicatesOverRestarts(t *testing.T) {
	state := filepath.Join(t.TempDir(), "seen.state")
	args := []string{"-key", "user.id", "-state", state, "-filter", "fingerprint:fpr=1e-8,memory=1MiB"}
	if got := output(t, records(0, 5000)+records(0, 10), args...); got != records(0, 5000) {
		t.Error("the first run")
	}
	want := records(4000, 6000)
	want = want[strings.Index(want, `{"user":{"id":5000}`):]
	if got := output(t, records(4000, 6000), args...); got != want {
		t.Error("the second run")
	}
	if got := output(t, records(0, 6000), args...); got != "" {
		t.Error("the third run")
	}
}

func TestKeysAreComparedAsJSON(t *testing.T) {
	input := `{"a":"x","b":{"c":1,"d":2}}
{"b":{"d":2, "c":1},"a":"\u0078"}
{"a":"x","b":{"c":1,"d":3}}
{"a":"x"}
not JSON
not JSON
{"a":12345678901234567890,"b":0}
{"a":12345678901234567891,"b":0}
{"a":"last","b":0}`
	want := strings.Replace(input, "{\"b\":{\"d\":2, \"c\":1},\"a\":\"\\u0078\"}\n", "", 1)
	if got := output(t, input, "-key", "a,b"); got != want {
		t.Errorf("got\n%s", got)
	}
}

// A line is answered before the next one comes, and a signal saves the state.
func TestASignalSavesTheState(t *testing.T) {
	state := filepath.Join(t.TempDir(), "seen.state")
	c := command("-key", "id", "-state", state)
	input, _ := c.StdinPipe()
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill()
	lines := bufio.NewReader(out)
	for _, line := range []string{"{\"id\":1}\n", "{\"id\":2}\n"} {
		io.WriteString(input, line)
		if got, err := lines.ReadString('\n'); got != line {
			t.Fatalf("%q, %v", got, err)
		}
	}
	c.Process.Signal(syscall.SIGTERM)
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := output(t, "{\"id\":2}\n{\"id\":3}\n", "-key", "id", "-state", state); got != "{\"id\":3}\n" {
		t.Errorf("%q", got)
	}
}

func TestADamagedStateIsAnError(t *testing.T) {
	state := filepath.Join(t.TempDir(), "seen.state")
	if err := os.WriteFile(state, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(config{state: state}, nil, nil, nil, nil)
	if !errors.Is(err, echoless.InvalidState) {
		t.Error(err)
	}
}
