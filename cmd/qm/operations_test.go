package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	markdown "github.com/yuin/goldmark/text"

	"qm/internal/testenv"
)

// The operations guide is a story: its blocks are run here one after the other, as an operator would, on stores and binaries of their own. A
// block in a language that is neither run nor known to hold no command fails the test, and so does a command that ends otherwise than the guide says.
//
// Proves: journal.replay
func TestTheOperationsGuide(t *testing.T) {
	t.Parallel()
	o := newOperation(t)
	ran := 0
	for _, b := range blocksOf(t, "../../docs/OPERATIONS.md") {
		if act := meanwhile[b.section]; act != nil && o.acted[b.section] == 0 {
			o.acted[b.section]++
			act(o)
		}
		switch b.language {
		case "sh", "console":
			for _, c := range b.commands(t) {
				o.run(c)
				ran++
			}
		case "sql": // what the owner of the database server types
			o.run(command{b.line, fmt.Sprintf("psql postgres://qm@%s/postgres -v ON_ERROR_STOP=1 <<'SQL'\n%sSQL", o.postgres.Addr, b.text), 0, nil})
			ran++
		case "nginx":
			o.proxy(b)
			ran++
		case "json", "text":
			if strings.Contains("\n"+b.text, "\n$ ") {
				t.Errorf("line %d: a block of %s holds a command, which nobody runs", b.line, b.language)
			}
		default:
			t.Errorf("line %d: a block in the language %q is not run: call it sh, console or sql, or json or text if it holds no command", b.line, b.language)
		}
	}
	for section := range meanwhile {
		if o.acted[section] == 0 {
			t.Errorf("the guide has no block in a section %q", section)
		}
	}
	if ran < 60 {
		t.Errorf("only %d commands were found", ran)
	}
	proved(t, stores{o.state("DATABASE_URL"), o.state("VALKEY_URL")})
}

// meanwhile is what happens to the operator before the first block of a section.
var meanwhile = map[string]func(*operation){
	// Somebody who owns the table edits a row.
	"A damaged journal": func(o *operation) {
		conn, err := pgx.Connect(o.t.Context(), o.state("DATABASE_MIGRATE_URL"))
		if err != nil {
			o.t.Fatal(err)
		}
		defer conn.Close(context.Background())
		for _, sql := range []string{
			"alter table journal disable trigger journal_append_only",
			"update journal set at = at - interval '1 hour' where stream = 'production/shop' and seq = 3",
			"alter table journal enable trigger journal_append_only",
		} {
			if _, err := conn.Exec(o.t.Context(), sql); err != nil {
				o.t.Fatal(err)
			}
		}
	},
}

// block is a fenced block of a guide.
type block struct {
	section, language, text string
	line                    int // where its text begins
}

func blocksOf(t *testing.T, file string) (blocks []block) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	section := ""
	_ = ast.Walk(goldmark.New().Parser().Parse(markdown.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			section = string(n.Lines().Value(source))
		case *ast.CodeBlock:
			t.Errorf("in %q: a block without a fence", section)
		case *ast.FencedCodeBlock:
			b := block{section: section, language: string(n.Language(source)), text: string(n.Lines().Value(source))}
			if n.Lines().Len() > 0 {
				b.line = bytes.Count(source[:n.Lines().At(0).Start], []byte("\n")) + 1
			}
			blocks = append(blocks, b)
		}
		return ast.WalkContinue, nil
	})
	return blocks
}

// command is one line that an operator types.
type command struct {
	line  int
	text  string
	exit  int
	shown []string // lines of its output, as the guide has them
}

var exitOf = regexp.MustCompile(`\s+# exit (\d+)$`)

// commands are the lines of a block of sh, and of a block of console those after "$ ".
func (b block) commands(t *testing.T) (list []command) {
	for i, line := range strings.Split(strings.TrimRight(b.text, "\n"), "\n") {
		if b.language == "console" {
			typed, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				if len(list) == 0 {
					t.Fatalf("line %d: output of no command", b.line+i)
				}
				list[len(list)-1].shown = append(list[len(list)-1].shown, line)
				continue
			}
			line = typed
		}
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		c := command{line: b.line + i, text: line}
		if m := exitOf.FindStringSubmatch(line); m != nil {
			c.exit, _ = strconv.Atoi(m[1])
		}
		list = append(list, c)
	}
	return list
}

// operation is a shell, and what it runs on.
type operation struct {
	t        *testing.T
	dir      string
	postgres *testenv.PGServer
	names    *strings.Replacer // the guide's addresses, and ours
	ports    map[string]string
	servers  map[string]*process // by port
	acted    map[string]int
}

func newOperation(t *testing.T) *operation {
	o := &operation{t: t, dir: t.TempDir(), postgres: testenv.OwnPostgres(t), servers: map[string]*process{}, acted: map[string]int{}}
	o.ports = map[string]string{"8080": freePort(t), "8081": freePort(t), "8088": freePort(t)}
	names := []string{"@db/", "@" + o.postgres.Addr + "/", "redis://valkey", testenv.OwnValkey(t).URL}
	for shown, port := range o.ports {
		names = append(names, "localhost:"+shown, "127.0.0.1:"+port, "PORT="+shown, "PORT="+port, "listen "+shown, "listen 127.0.0.1:"+port)
	}
	o.names = strings.NewReplacer(names...)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "testdata"), filepath.Join(o.dir, "testdata")); err != nil {
		t.Fatal(err)
	}
	o.write("state", "export HOST=127.0.0.1 PORT="+o.ports["8080"]+" PGOPTIONS='-c client_min_messages=warning'\n")
	return o
}

func (o *operation) write(name, text string) {
	o.t.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// shell is a command with what the commands before it have exported.
func (o *operation) shell(ctx context.Context, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = o.dir
	cmd.Env = []string{"PATH=" + filepath.Dir(binary(o.t, "qm")) + ":" + os.Getenv("PATH"), "HOME=" + o.dir, "LC_ALL=C.UTF-8", "TZ=UTC"}
	cmd.WaitDelay = time.Second
	return cmd
}

var starts = regexp.MustCompile(`^((?:[A-Z_]+=\S+ )*)qm(\s+#.*)?$`)

// run types a command, and holds it to the exit code and the output of the guide.
func (o *operation) run(c command) {
	o.t.Helper()
	script := o.names.Replace(c.text)
	if starts.MatchString(c.text) && c.exit == 0 {
		o.start(c, script)
		return
	}
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	cmd := o.shell(ctx, "set -a; . ./state; "+script+"\ndeclare -px >state")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		o.t.Fatalf("line %d: %s: %v", c.line, c.text, err)
	}
	if code := cmd.ProcessState.ExitCode(); code != c.exit {
		o.t.Fatalf("line %d: %s\nexit %d, not %d:\n%s", c.line, c.text, code, c.exit, &out)
	}
	for _, line := range c.shown {
		if strings.TrimSpace(line) != "…" && !pattern(line).MatchString(out.String()) {
			o.t.Errorf("line %d: %s\nprints:\n%s\nand not: %s", c.line, c.text, &out, line)
		}
	}
	if strings.Contains(c.text, "/admin/shutdown") {
		o.ended(script)
	}
	o.t.Logf("line %d: %s\n%s", c.line, c.text, &out)
}

// pattern is a line of output as the guide shows it: any number stands for any other, and … for anything.
func pattern(line string) *regexp.Regexp {
	line = regexp.QuoteMeta(strings.TrimRight(line, " "))
	line = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*|\b(?:ab)+\b`).ReplaceAllString(line, `[0-9a-f]+`)
	line = strings.ReplaceAll(line, "…", ".*")
	return regexp.MustCompile(`(?m)^\s*` + strings.TrimLeft(line, " ") + `\s*$`)
}

// start is the command qm, which goes on while the operator types. It is awaited until it is ready and owns the rooms that there are.
func (o *operation) start(c command, script string) {
	o.t.Helper()
	cmd := o.shell(context.WithoutCancel(o.t.Context()), "set -a; . ./state; "+regexp.MustCompile(`qm(\s+#.*)?$`).ReplaceAllString(script, "exec env qm"))
	p := &process{t: o.t, cmd: cmd, output: new(lockedBuffer), exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	port := o.state("PORT")
	if m := regexp.MustCompile(`PORT=(\d+)`).FindStringSubmatch(script); m != nil {
		port = m[1]
	}
	if o.servers[port] != nil {
		o.t.Fatalf("line %d: a server listens at %s already", c.line, port)
	}
	p.url = "http://127.0.0.1:" + port
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	others := len(o.servers)
	o.servers[port] = p
	o.t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.exited
		if o.t.Failed() {
			o.t.Logf("qm at %s said:\n%s", p.url, p.output)
		}
	})
	eventually(o.t, fmt.Sprintf("line %d: qm is ready", c.line), func() bool {
		select {
		case <-p.exited:
			o.t.Fatalf("line %d: qm ended: %v", c.line, p.err)
		default:
		}
		code, _ := tryGet(p.url + "/healthz")
		return code == http.StatusOK && (others > 0 || o.owns(p))
	})
}

// owns reports whether a process owns every room.
func (o *operation) owns(p *process) bool {
	get := func(path string) string {
		req, _ := http.NewRequest("GET", p.url+path, nil)
		req.Header.Set("Authorization", "Bearer "+o.state("ADMIN_KEY"))
		r, err := client.Do(req)
		if err != nil {
			return ""
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return string(text)
	}
	rooms := strings.Count(get("/api/v1/admin/rooms"), `"targetUrl"`)
	return strings.Contains(get("/metrics"), fmt.Sprintf("qm_rooms_owned %d\n", rooms))
}

// ended awaits the end of the process that was told to stop.
func (o *operation) ended(script string) {
	o.t.Helper()
	address := o.state("QM")
	for port, p := range maps.Clone(o.servers) {
		if strings.HasSuffix(address, ":"+port) {
			<-p.exited
			if p.err != nil {
				o.t.Errorf("%s: qm did not stop in order: %v", script, p.err)
			}
			delete(o.servers, port)
		}
	}
}

// state is an exported variable of the operator's shell.
func (o *operation) state(name string) string {
	o.t.Helper()
	out, err := o.shell(o.t.Context(), `. ./state; printf %s "${`+name+`-}"`).Output()
	if err != nil {
		o.t.Fatal(err)
	}
	return string(out)
}

// proxy runs nginx with a block of its configuration, and requires what the guide says of it: an asset of a page can be had when the build that gave it
// out is gone.
func (o *operation) proxy(b block) {
	o.t.Helper()
	config := strings.ReplaceAll(o.names.Replace(b.text), "/var/cache/nginx/qm", filepath.Join(o.dir, "cache"))
	user := ""
	if os.Getuid() == 0 {
		user = "user root; " // its workers have to reach a directory that is ours alone
	}
	o.write("nginx.conf", user+"daemon off; pid nginx.pid; error_log stderr; events {}\nhttp { access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;\n"+config+"}\n")
	ctx, cancel := context.WithCancel(o.t.Context())
	cmd := exec.CommandContext(ctx, testenv.Nginx(o.t), "-p", o.dir, "-c", filepath.Join(o.dir, "nginx.conf"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that its workers end with it
	said := new(lockedBuffer)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
	}()
	front := "http://127.0.0.1:" + o.ports["8088"]
	eventually(o.t, "nginx answers", func() bool { code, _ := tryGet(front + "/healthz"); return code == http.StatusOK })
	page, err := client.Get(front + "/w/shop")
	if err != nil {
		o.t.Fatal(err)
	}
	html, _ := io.ReadAll(page.Body)
	_ = page.Body.Close()
	assets := slices.Compact(slices.Sorted(slices.Values(regexp.MustCompile(`/assets/[A-Za-z0-9_.-]+`).FindAllString(string(html), -1))))
	if len(assets) < 2 {
		o.t.Fatalf("the page links %v", assets)
	}
	look := func(when string) {
		for _, path := range assets {
			if code, err := tryGet(front + path); code != http.StatusOK {
				o.t.Errorf("%s %s: %d %v\n%s", when, path, code, err, said)
			}
		}
	}
	look("while the build is there")
	old := o.servers[strings.TrimPrefix(o.state("QM"), "http://127.0.0.1:")]
	old.signal(syscall.SIGSTOP) // as good as gone: whatever is answered now comes from the cache
	defer old.signal(syscall.SIGCONT)
	look("without it")
}
