package echoless

import (
	"path/filepath"
	"sync"
	"testing"
)

// A shared filter is saved while goroutines use and save it.
func TestASharedFilterIsUsedWhileItIsSaved(t *testing.T) {
	shared, err := NewShared("row4x16:memory=2MiB")
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	keys := make([]uint64, 20_000)
	for i := range keys {
		keys[i] = uint64(i)
	}
	must2(shared.Observe(Numbers(keys)))
	path := filepath.Join(t.TempDir(), "shared.state")
	stop := make(chan struct{})
	var users, savers sync.WaitGroup
	for i := range 2 {
		users.Add(1)
		go func() {
			defer users.Done()
			for n := uint64(0); ; n++ {
				if _, err := shared.Observe(Numbers([]uint64{1<<40 + n%10_000<<1 + uint64(i)})); err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
		savers.Add(1)
		go func() {
			defer savers.Done()
			for range 10 {
				if err := shared.SaveFile(path, []byte("line 2")); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	savers.Wait()
	close(stop)
	users.Wait()
	loaded, position, err := LoadSharedFile(path)
	if err != nil || string(position) != "line 2" {
		t.Fatalf("%q, %v", position, err)
	}
	defer loaded.Close()
	verdicts, err := loaded.Contains(Numbers(keys))
	if err != nil || verdicts.Count() != len(keys) {
		t.Errorf("%d keys from before the save, %v", verdicts.Count(), err)
	}
}
