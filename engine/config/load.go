package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/finding"
	"daycare/engine/form"
	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// Name is the name of the settings file in .daycare.
const Name = "settings.yaml"

// maxSettings bounds the settings file, in bytes.
const maxSettings = 1 << 20

// Load reads the configuration of a .daycare directory; without a settings file it returns the
// defaults. Findings are always returned, warnings together with a Config. The error says that
// there is no Config, because a file cannot be read or has findings of severity Error (finding.Join
// of them). kinds are the existing types of connectors; without any, connectors are not checked.
func Load(root string, env Env, kinds ...ConnectorKind) (*Config, []finding.Finding, error) {
	data, err := readSettings(filepath.Join(root, Name))
	if err != nil {
		return nil, nil, err
	}

	return LoadText(root, data, env, kinds...)
}

// LoadText is Load with data instead of the content of settings.yaml.
func LoadText(root string, data []byte, env Env, kinds ...ConnectorKind) (*Config, []finding.Finding, error) {
	r := &reader{kind.YAML(filepath.Join(root, Name), data)}
	c, err := r.settings(env)
	if err != nil {
		return nil, r.Found, err
	}
	secrets, found, err := readAuth(root)
	r.Found = append(r.Found, found...)
	if err != nil {
		return nil, r.Found, err
	}
	c.env, c.secrets = env, secrets
	c.findSecrets()
	r.check(c, kinds)
	if r.Failed() {
		return nil, r.Found, finding.Join(r.Found)
	}
	c.addProject(root)
	return c, r.Found, nil
}

// kind is how findings in settings.yaml are called.
var kind = form.Kind{ID: "settings"}

// A reader reads settings.yaml.
type reader struct{ *form.File }

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

// settings makes a Config of a file and the environment. What has error findings
// is left at its default, so that the rest can be checked too.
func (r *reader) settings(env Env) (*Config, error) {
	c, err := r.assemble(r.Values(reflect.TypeFor[Config]()), env)
	if err != nil {
		return nil, err
	}
	r.attach(c)
	return c, nil
}

// assemble lays the environment over the values of the file and the defaults
// below them.
func (r *reader) assemble(values map[string]any, env Env) (*Config, error) {
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	_ = v.MergeConfigMap(values) // a map never fails
	if env != nil {
		r.override(v, env, reflect.TypeFor[Config](), "DAYCARE", "")
	}
	c := Default()
	if err := v.Unmarshal(c, decoding); err != nil {
		return nil, fmt.Errorf("assemble settings: %w", err)
	}

	return c, nil
}

// decoding makes mapstructure use our tags and wrap secrets.
func decoding(d *mapstructure.DecoderConfig) {
	d.TagName, d.Squash = "json", true
	d.DecodeHook = func(from, to reflect.Type, value any) (any, error) {
		if to == secretType && from.Kind() == reflect.String {
			return Secret{value.(string)}, nil
		}
		return value, nil
	}
}

// override sets each single value that the environment has, by its path:
// tools.exec.timeout is DAYCARE_TOOLS_EXEC_TIMEOUT. Lists of objects have no
// such names; lists of texts are written with commas. above and path are of t, in the environment and for viper.
func (r *reader) override(v *viper.Viper, env Env, t reflect.Type, above, path string) {
	for _, f := range form.Fields(t) {
		name, key := above+"_"+strings.ToUpper(f.Key), path+f.Key
		switch {
		case f.Type.Kind() == reflect.Struct && f.Type != secretType:
			r.override(v, env, f.Type, name, key+"::")
			continue
		case f.Type.Kind() == reflect.Map, f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			continue
		}
		text, set := env(name)
		if !set {
			continue
		}
		if f.Type.Kind() == reflect.Slice {
			v.Set(key, splitList(text))
			continue
		}
		value, allowed := form.Parse(text, f)
		if allowed != "" {
			found := strconv.Quote(form.Short(text))
			if f.Type == secretType {
				found = "something else"
			}
			r.Found = append(r.Found, finding.Finding{ID: "environment-bad-value", Severity: finding.Error, File: "environment",
				Reason: fmt.Sprintf("%s: found %s, allowed: %s", name, found, allowed), Remedy: "change or unset the variable"})
			continue
		}
		v.Set(key, value)
	}
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
func (r *reader) attach(c *Config) {
	for i := range c.Providers {
		p := &c.Providers[i]
		if p.Concurrency == 0 {
			p.Concurrency = defaultConcurrency
		}
		if p.Model == "" {
			p.Model = p.defaultModel()
		}
		p.Why = fmt.Sprintf("%s:%d", Name, r.Node(entry("providers", i)).Line)
	}
	for i := range c.MCP.Servers {
		if s := &c.MCP.Servers[i]; s.Timeout == 0 {
			s.Timeout = defaultMCPTimeout
		}
	}
	c.routes = map[string]finding.Finding{}
	for key := range c.Routing.Routes() {
		at := finding.Finding{ID: "settings-routing", Severity: finding.Error, File: r.Name}
		if r.Has("routing." + key) { // else it is of the environment
			n := r.Node("routing." + key)
			at.Line, at.Column = n.Line, n.Column
		}
		c.routes[key] = at
	}
	for i := range c.Connectors {
		c.Connectors[i].Raw, c.Connectors[i].file = r.Node(entry("connectors", i)), r.Name
	}
}

// entry is the path of an entry of a list, and of keys in it.
func entry(list string, i int, keys ...string) string {
	return strings.Join(append([]string{fmt.Sprintf("%s[%d]", list, i)}, keys...), ".")
}
