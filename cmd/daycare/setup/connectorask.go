package setup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/config"
	"daycare/engine/fault"
	"daycare/engine/form"
)

// addFlags are the flags of connectors add.
type addFlags struct {
	id                            string
	set, fromEnv, fromFile, allow []string
}

// addition is what the flags say of a connector.
func (f addFlags) addition(cmd *cobra.Command, c *term.App, home, name string) (*addition, error) {
	kind, ok := plugins.ConnectorKind(name)
	switch {
	case !ok:
		return nil, term.Usage(cmd, "unknown connector type %q; available: %s", name, strings.Join(addable(), ", "))
	case kind.Setup == nil:
		return nil, &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("set up a %s in settings.yaml", name),
			Do: "see docs/connectors/" + name + ".md, then edit with: daycare config edit"}
	}

	a := &addition{home: home, kind: kind, id: name, allow: f.allow, secrets: map[string]config.Secret{},
		knocks: make(chan chat.Stranger, 16)}
	if f.id != "" {
		a.id = f.id
	}

	conf, err := c.Config()
	if err != nil {
		return nil, err
	}
	if _, taken := conf.Connector(a.id); taken || !form.Is("id", a.id) {
		return nil, &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("the id %q is in use or invalid", a.id),
			Do: "choose another id with --id; to change the existing connector: daycare config edit"}
	}

	for _, flag := range f.set {
		if err := a.set(cmd, flag); err != nil {
			return nil, err
		}
	}

	return a, errors.Join(a.fromEnv(cmd, f.fromEnv), a.fromFile(cmd, c, f.fromFile))
}

// fields are the settings that an entry may have beside those that add writes itself.
func (a *addition) fields() map[string]form.Field {
	all := map[string]form.Field{}
	for _, f := range append(form.Fields(reflect.TypeFor[config.Connector]()), a.kind.Fields()...) {
		if !slices.Contains([]string{"id", "type", "allow"}, f.Key) {
			all[f.Key] = f
		}
	}

	return all
}

// set takes a --set KEY=VALUE.
func (a *addition) set(cmd *cobra.Command, flag string) error {
	key, text, ok := strings.Cut(flag, "=")
	field, known := a.fields()[key]
	switch {
	case !ok:
		return term.Usage(cmd, "--set %q is not of the form KEY=VALUE", flag)
	case a.has(key):
		return term.Usage(cmd, "--set %s is given twice", key)
	case !known:
		var names []string
		for name := range a.fields() {
			names = append(names, name)
		}
		hint := "see docs/connectors/" + a.kind.Type + ".md"
		if near := form.Nearest(key, names); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		return &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("%s has no setting %q", a.kind.Type, key), Do: hint}
	}

	a.values = append(a.values, value{key, asYAML(field, text)})
	return nil
}

// asYAML is what someone typed for a setting: texts need no quotes, lists no brackets.
func asYAML(f form.Field, text string) string {
	switch {
	case f.Type.Kind() == reflect.String:
		return strconv.Quote(text)
	case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.String && !strings.HasPrefix(text, "["):
		var list []string
		for part := range strings.SplitSeq(text, ",") {
			list = append(list, strconv.Quote(strings.TrimSpace(part)))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}

	return text
}

// secret finds the secret that a flag is about, and the rest of the flag.
func (a *addition) secret(cmd *cobra.Command, flag, text string) (connectors.Secret, string, error) {
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		name, rest = "", text
	}

	for _, s := range a.kind.Setup.Secrets {
		if s.Name == name && rest != "" {
			return s, rest, nil
		}
	}

	return connectors.Secret{}, "", term.Usage(cmd, "--%s %q: %s has no such token", flag, text, a.kind.Type)
}

func (a *addition) fromEnv(cmd *cobra.Command, flags []string) error {
	for _, flag := range flags {
		s, name, err := a.secret(cmd, "token-from-env", flag)
		if err != nil {
			return err
		}
		if os.Getenv(name) == "" {
			return &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("%s is not set in the environment", name),
				Do: "set it here and where the daemon starts"}
		}
		a.values = append(a.values, value{s.Env, strconv.Quote(name)})
	}

	return nil
}

func (a *addition) fromFile(cmd *cobra.Command, c *term.App, flags []string) error {
	for _, flag := range flags {
		s, path, err := a.secret(cmd, "token-file", flag)
		if err != nil {
			return err
		}
		f, err := term.OpenInput(c, path)
		if err != nil {
			return err
		}

		data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
		f.Close()
		if err != nil {
			return fmt.Errorf("read the token: %w", err)
		}
		if a.secrets[s.ID(a.id)], err = asSecret(string(data)); err != nil {
			return err
		}
	}

	return nil
}

// ask asks for what is missing, or where nobody can be asked says what that is. again: what
// there is does not work.
func (a *addition) ask(c *term.App, again bool) error {
	if again {
		a.forget()
	}
	conf, err := c.Config()
	if err != nil {
		return err
	}

	var missing []string
	for _, o := range a.kind.Options() {
		switch {
		case a.has(o.Key):
		case c.Asks():
			text, err := answer(c, o.Question, o.Optional)
			if err != nil {
				return err
			}
			if text != "" {
				a.values = append(a.values, value{o.Key, asYAML(a.fields()[o.Key], text)})
			}
		case !o.Optional:
			missing = append(missing, "--set "+o.Key+"=… ("+o.Question+")")
		}
	}

	for _, s := range a.kind.Setup.Secrets {
		id, given := s.ID(a.id), ""
		if s.Name != "" {
			given = s.Name + "="
		}

		switch _, typed := a.secrets[id]; {
		case typed || a.has(s.Env) || !s.Needed(a.has) || !again && !conf.Secret(id).IsZero():
		case c.Asks():
			if a.secrets[id], err = askKey(c, s.What+" (not shown; saved in auth.json)", false); err != nil {
				return err
			}
		default:
			missing = append(missing, fmt.Sprintf("--token-from-env %sNAME or --token-file %sFILE (%s)", given, given, s.What))
		}
	}

	if len(a.allow) == 0 && !a.has("pairing") && !c.Asks() {
		missing = append(missing, "--allow ID (a user who has access)")
	}
	if len(missing) > 0 {
		return &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("without a terminal, %s needs more flags", a.kind.Type),
			Do: strings.Join(missing, "\n")}
	}

	return nil
}

// forget drops what was typed, so that it is asked for again.
func (a *addition) forget() {
	clear(a.secrets)
	asked := a.kind.Options()
	a.values = slices.DeleteFunc(a.values, func(v value) bool {
		return slices.ContainsFunc(asked, func(o connectors.Option) bool { return o.Key == v.key }) ||
			slices.ContainsFunc(a.kind.Setup.Secrets, func(s connectors.Secret) bool { return s.Env == v.key })
	})
}

// answer asks for a line, until there is one if it may not be left out.
func answer(c *term.App, question string, optional bool) (string, error) {
	if optional {
		question += " (Enter: none)"
	}
	for {
		line, err := c.Answer(question, "")
		if err != nil || line != "" || optional {
			return line, err
		}
	}
}
