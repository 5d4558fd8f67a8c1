package shell

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/permission"
	"daycare/tools/shell/sandbox"
)

// A Service is a program that daycare speaks to over its standard input and output, and that
// works for all agents: an MCP server. It is held like a command of an agent, with rights of
// its own.
type Service struct {
	Name string   // for messages
	Argv []string // the first is a path, or looked for in PATH
	Env  []string // beside the usual variables; nothing else of daycare's environment is passed
	Home string   // its private folder, made when needed
	Dir  string   // where it starts, which it can change; "": Home
	// Read and Write are what else it reaches, and Network the hosts, as allowedDomains of exec.
	Read, Write, Network []string
	// Open: no sandbox holds it.
	Open bool
	// Errors takes what it writes to its standard error. Only one goroutine writes to it.
	Errors io.Writer
}

// Services start programs. They end with daycare, however that ends.
type Services struct {
	options Options
	confine *confinement
}

// NewServices makes services with the sandbox that commands have.
func NewServices(o Options) *Services {
	o = o.complete()
	return &Services{o, &confinement{options: o}}
}

// A Serving is a service that runs. Read and Write are its standard output and input.
type Serving struct {
	*io.PipeReader
	run  *running
	once sync.Once
}

// Start starts a service.
func (s *Services) Start(v Service) (*Serving, error) {
	runner, err := s.runner(v)
	if err != nil {
		return nil, err
	}
	if err := makeHome(v.Home); err != nil {
		return nil, fmt.Errorf("make folder of %s: %w", v.Name, err)
	}
	v.Dir = cmp.Or(v.Dir, v.Home)
	if _, _, err := s.options.Folders.Locate(v.Dir); err != nil {
		return nil, fmt.Errorf("%s is not a folder to start in: %w", v.Dir, beneath.Reason(err))
	}
	argv, err := v.found()
	if err != nil {
		return nil, err
	}
	p, err := s.process(v, argv, runner)
	if err != nil {
		return nil, err
	}
	read, write := io.Pipe()
	run, err := p.start(write)
	if err != nil {
		return nil, err
	}
	go func() {
		<-run.done
		write.Close()
	}()
	return &Serving{PipeReader: read, run: run}, nil
}

// runner is the sandbox of a service. None is only for one that its owner wants without.
func (s *Services) runner(v Service) (*sandbox.Runner, error) {
	runner, err := s.confine.find()
	switch {
	case v.Open:
		return sandbox.Plain(s.options.Helper), nil
	case err != nil:
		return nil, fmt.Errorf("the sandbox of the settings does not work here: %w", err)
	case runner.Level == sandbox.None && s.options.Mode != Off:
		return nil, fmt.Errorf("%s\nto run %s without one, with all that you can do, set sandbox: { off: true } for it", runner.Why, v.Name)
	case len(v.Network) > 0 && runner.Level != sandbox.None && !runner.Proxied():
		return nil, errors.New("a network needs namespaces, which this system keeps from daycare, or bubblewrap")
	}

	return runner, nil
}

// found is the command line with the path of the program.
func (v Service) found() ([]string, error) {
	program := v.Argv[0]
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		program = filepath.Join(v.Dir, program)
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", v.Argv[0], errors.Unwrap(err))
	}

	return append([]string{path}, v.Argv[1:]...), nil
}

// process is the service, ready to start.
func (s *Services) process(v Service, argv []string, runner *sandbox.Runner) (process, error) {
	p := process{
		commandLine: commandLine{argv: argv, keepOpen: true,
			mark: fmt.Sprintf("service-%d-%d", os.Getpid(), time.Now().UnixNano())},
		isolation: isolation{runner: runner, view: sandbox.View{Dir: v.Dir}},
		stderr:    s.options.Redact.Writer(v.Errors), grace: s.options.grace,
		began: func() func() { return s.begins(v, runner) }, refused: func(what string) { s.tell(v.Name, what) }}
	env := s.options.environment()
	if runner.Level != sandbox.None {
		if err := s.hold(&p, v); err != nil {
			return p, err
		}
		env = p.confined(env)
		if len(v.Network) > 0 {
			env = append(env, "NODE_USE_ENV_PROXY=1") // or Node.js does not look at http_proxy
		}
	}
	p.room = newRoom(s.options.Reserve, v.Home, v.Dir)
	p.env = append(env, v.Env...)
	return p, nil
}

// hold gives a process the view of a service.
func (s *Services) hold(p *process, v Service) (err error) {
	own := s.options
	own.Home = func(string) string { return v.Home }
	own.Shown = func(string) (read, write []string) { return nil, []string{v.Home} }
	set := permission.Set{WorkingDir: v.Dir, ReadDirs: v.Read, WriteDirs: v.Write}
	c := &confinement{options: own, runner: p.runner}
	if p.view, p.watch, err = c.view("", set, v.Dir); err != nil {
		return err
	}
	if len(v.Network) == 0 {
		return nil
	}
	if p.proxy, err = newProxy(v.Network, permission.Set{}, s.options.Dial); err != nil {
		p.watch.End()
		return err
	}
	p.view.Proxy, p.domains = p.proxy.path(), v.Network
	return nil
}

// begins tells that a service begins that may change what agents read. One that has its own
// folder only cannot, and one without a sandbox is trusted like what its owner starts.
func (s *Services) begins(v Service, runner *sandbox.Runner) (ended func()) {
	if s.options.Began == nil || runner.Level == sandbox.None || v.Dir == v.Home && len(v.Write) == 0 {
		return func() {}
	}
	return s.options.Began(v.Name, true)
}

func (s *Services) tell(name, what string) {
	if s.options.Refused != nil {
		s.options.Refused(name, what)
	}
}

// Write writes to the standard input.
func (s *Serving) Write(p []byte) (int, error) { return s.run.stdin.Write(p) }

// Ended is closed when nothing of the service is left.
func (s *Serving) Ended() <-chan struct{} { return s.run.done }

// How says how it ended, once Ended is closed.
func (s *Serving) How() string {
	if end := s.run.end; end.signal != "" {
		return "ended by signal: " + end.signal
	}
	return fmt.Sprintf("exit code %d", s.run.end.code)
}

// leave is how long a service may take to end when its input does.
const leave = time.Second

// Close ends the service and waits until nothing of it is left.
func (s *Serving) Close() error {
	s.once.Do(func() {
		s.run.stdin.Close()
		s.PipeReader.Close() // so that what it still writes keeps nobody waiting
		select {
		case <-s.run.ended:
		case <-time.After(leave):
			s.run.terminate()
		}
	})
	<-s.run.done
	return nil
}
