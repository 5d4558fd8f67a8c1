package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"daycare/engine/beneath"
	"daycare/engine/finding"
)

// Name is the settings file in a .daycare directory.
const Name = "settings.yaml"

// maxSettings bounds the settings file, in bytes.
const maxSettings = 1 << 20

// Load reads the configuration of a .daycare directory. No settings file is all
// defaults. Findings come in any case, warnings also beside a Config; the error
// says that there is none, because a file cannot be read or has findings of
// severity Error (finding.Join of them). connectorTypes are the types that exist;
// without any, types are not checked.
func Load(root string, env Env, connectorTypes ...string) (*Config, []finding.Finding, error) {
	path := filepath.Join(root, Name)
	data, err := readSettings(path)
	if err != nil {
		return nil, nil, err
	}
	r, doc := newReader(path, data)
	c, err := r.settings(doc, env)
	if err != nil {
		return nil, r.found, err
	}
	secrets, found, err := readAuth(root)
	r.found = append(r.found, found...)
	if err != nil {
		return nil, r.found, err
	}
	c.env, c.secrets = env, secrets
	c.findSecrets()
	r.check(c, doc, connectorTypes)
	if err := finding.Join(r.found); err != nil {
		return nil, r.found, err
	}
	return c, r.found, nil
}

func readSettings(path string) ([]byte, error) {
	data, _, err := beneath.Own(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, beneath.ErrTooLarge) {
		return nil, fmt.Errorf("read settings: %s is over %d bytes", path, maxSettings)
	}
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return data, nil
}

// newReader parses a file; doc is nil if there is nothing in it, or nothing that
// can be read.
func newReader(path string, data []byte) (r *reader, doc *yaml.Node) {
	r = &reader{file: path, lines: strings.Split(lineEnds.Replace(string(data)), "\n")}
	doc, bad := parseYAML(path, data)
	if bad != nil {
		r.found = append(r.found, *bad)
	}
	return r, doc
}

// lineEnds makes all ends of lines that YAML knows one.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// settings makes a Config of a file and the environment. What has error findings
// is left at its default, so that the rest can be checked too.
func (r *reader) settings(doc *yaml.Node, env Env) (*Config, error) {
	values := map[string]any{}
	if doc != nil {
		if v, ok := r.read(doc, reflect.TypeFor[Config](), "", ""); ok {
			values = v.(map[string]any)
		}
	}
	c, err := r.assemble(values, env)
	if err != nil {
		return nil, err
	}
	c.attach(doc, r.file)
	return c, nil
}

// parseYAML gives the top mapping of the first document; nil if there is nothing.
func parseYAML(path string, data []byte) (*yaml.Node, *finding.Finding) {
	bad := func(line int, reason string) *finding.Finding {
		return &finding.Finding{ID: "settings-syntax", Severity: finding.Error, File: path, Line: line, Reason: reason}
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		line, reason := yamlError(err)
		return nil, bad(line, reason)
	}
	if err := d.Decode(&second); err == nil {
		return nil, bad(second.Line, "there is a second document after ---, allowed: one")
	} else if !errors.Is(err, io.EOF) {
		line, reason := yamlError(err)
		return nil, bad(line, reason)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 {
		return nil, nil
	}
	return doc.Content[0], nil
}

// yamlError takes the line out of a message of the YAML package: "yaml: line 3:
// reason", or "yaml: reason".
func yamlError(err error) (line int, reason string) {
	reason = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(reason, "line "); ok {
		number, after, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			line, reason = n, after
		}
	}
	return line, "not YAML: " + reason
}

// assemble lays the environment over the values of the file and the defaults
// below them.
func (r *reader) assemble(values map[string]any, env Env) (*Config, error) {
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	if err := v.MergeConfigMap(values); err != nil {
		return nil, fmt.Errorf("merge settings: %w", err)
	}
	if env != nil {
		r.override(v, env, reflect.TypeFor[Config](), nil)
	}
	c := Default()
	if err := v.Unmarshal(c, decoding); err != nil {
		return nil, fmt.Errorf("assemble settings: %w", err)
	}
	return c, nil
}

// decoding makes mapstructure use our tags and wrap secrets.
func decoding(d *mapstructure.DecoderConfig) {
	d.TagName = "json"
	d.DecodeHook = func(from, to reflect.Type, value any) (any, error) {
		if to == secretType && from.Kind() == reflect.String {
			return Secret{value.(string)}, nil
		}
		return value, nil
	}
}

// override sets each single value that the environment has, by its path:
// tools.exec.timeout is DAYCARE_TOOLS_EXEC_TIMEOUT. Lists of objects have no
// such names; lists of texts are written with commas.
func (r *reader) override(v *viper.Viper, env Env, t reflect.Type, path []string) {
	for _, f := range fields(t) {
		at := append(slices.Clone(path), f.key)
		switch {
		case f.Type.Kind() == reflect.Struct && f.Type != secretType:
			r.override(v, env, f.Type, at)
			continue
		case f.Type.Kind() == reflect.Map, f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			continue
		}
		name := envName(at)
		text, set := env(name)
		if !set {
			continue
		}
		key := strings.Join(at, "::")
		if f.Type.Kind() == reflect.Slice {
			v.Set(key, splitList(text))
			continue
		}
		value, allowed := parse(text, "", f.Type, f.Tag)
		if allowed != "" {
			found := strconv.Quote(short(text))
			if f.Type == secretType {
				found = "something else"
			}
			r.found = append(r.found, finding.Finding{ID: "environment-bad-value", Severity: finding.Error, File: "environment",
				Reason: fmt.Sprintf("%s: found %s, allowed: %s", name, found, allowed), Remedy: "change or unset the variable"})
			continue
		}
		v.Set(key, value)
	}
}

func envName(path []string) string {
	return "DAYCARE_" + strings.ToUpper(strings.Join(path, "_"))
}

func splitList(text string) []string {
	var list []string
	for _, s := range strings.Split(text, ",") {
		if s = strings.TrimSpace(s); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// attach completes what is in lists, which have no defaults of their own: each
// connector gets its node, each provider its place in the file.
func (c *Config) attach(doc *yaml.Node, file string) {
	for i := range c.Providers {
		p := &c.Providers[i]
		if p.Concurrency == 0 {
			p.Concurrency = defaultConcurrency
		}
		if p.Model == "" {
			p.Model = p.defaultModel()
		}
	}
	for i, n := range entries(doc, "providers", len(c.Providers)) {
		c.Providers[i].Why = fmt.Sprintf("%s:%d", Name, n.Line)
	}
	for i, n := range entries(doc, "connectors", len(c.Connectors)) {
		c.Connectors[i].Raw, c.Connectors[i].file = n, file
	}
}

// entries are the mappings of a top-level list, as many as were read.
func entries(doc *yaml.Node, key string, n int) []*yaml.Node {
	list := member(doc, key)
	if list == nil {
		return nil
	}
	var nodes []*yaml.Node
	for _, e := range list.Content {
		if e = resolve(e); e.Kind == yaml.MappingNode && len(nodes) < n {
			nodes = append(nodes, e)
		}
	}
	return nodes
}

// member is the value of a key in a mapping, or nil.
func member(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolve(n.Content[i+1])
		}
	}
	return nil
}
