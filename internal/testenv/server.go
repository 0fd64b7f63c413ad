package testenv

import (
	"errors"
	"fmt"
	"syscall"
)

// server is a server program that may be started and ended many times.
type server struct {
	process *process // nil while stopped
	paused  bool
}

var (
	errStopped = errors.New("it is not running")
	errStarted = errors.New("it is running already")
)

// shared holds on to the servers of the test binary: a garbage-collected process would close the pipe
// whose end tells its guard that the binary is gone.
var shared struct {
	cluster  *cluster
	instance *instance
}

// start launches the program and waits until it answers.
func (s *server) start(dir string, as *syscall.Credential, answers func() bool, path string, args ...string) error {
	if s.process != nil {
		return errStarted
	}
	p, err := launch(dir, as, path, args...)
	if err != nil {
		return err
	}
	s.process = p
	ready := false
	until(startLimit, func() bool {
		// It must live after it answered: on a port that somebody took, it is another one that answers.
		ready = answers() && running(p.pid())
		return ready || !running(p.pid())
	})
	if !ready {
		return errors.Join(fmt.Errorf("it did not come up:\n%s", p.tail()), s.kill())
	}
	return nil
}

func (s *server) stop(signal syscall.Signal) error {
	if s.process == nil {
		return errStopped
	}
	if s.paused {
		if err := s.resume(); err != nil {
			return err
		}
	}
	p := s.process
	s.process = nil
	return p.end(signal)
}

func (s *server) kill() error {
	if s.process == nil {
		return errStopped
	}
	p := s.process
	s.process, s.paused = nil, false
	return p.kill()
}

func (s *server) pause() error {
	if s.process == nil {
		return errStopped
	}
	s.paused = true
	return s.process.pause()
}

func (s *server) resume() error {
	if s.process == nil {
		return errStopped
	}
	s.process.resume()
	s.paused = false
	return nil
}

// remove ends the server for good, in whichever state it is.
func (s *server) remove() error {
	if s.process == nil {
		return nil
	}
	return s.kill()
}
