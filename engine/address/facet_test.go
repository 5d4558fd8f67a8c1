package address

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

// ids are the ids of agents, in their order.
func ids(list []Meta) (all []string) {
	for _, m := range list {
		all = append(all, m.ID)
	}
	return all
}

// walked is what a walk through agents shows, until it has seen so many.
func walked(walk func(look func(Meta) bool), most int) (list []Meta) {
	walk(func(m Meta) bool {
		list = append(list, m)
		return len(list) < most
	})
	return list
}

// What is listed of agents, by whom they are of, what they are and whether they have
// ended, is what going through all of them finds, whatever was done before.
func TestListsAreWhatGoingThroughAllFinds(t *testing.T) {
	root := t.TempDir()
	vol := disk.NewVolume(root)
	x, _ := load(t, root)
	random := rand.New(rand.NewPCG(5, 6))
	ended := map[string]bool{}
	var made []string
	alive := func(fits func(Meta) bool) (all []string) {
		for _, m := range x.All() { // in the order of handles
			if fits(m) {
				all = append(all, m.ID)
			}
		}
		return all
	}
	family := func(m Meta) string {
		for m.Maker() != "" {
			above, ok := x.Get(m.Maker())
			if !ok {
				return "lost"
			}
			m = above
		}
		return FamilyOf(m)
	}
	check := func(what string) {
		t.Helper()
		same := func(list string, got, want []string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Fatalf("after %s %s are\n%v, want\n%v", what, list, got, want)
			}
		}
		for _, of := range append(slices.Clone(made[max(0, len(made)-10):]), "") {
			same("children", ids(x.Children(of)), alive(func(m Meta) bool { return of != "" && m.Descriptor.ParentAgentID == of }))
			same("those made", ids(x.Made(of)), alive(func(m Meta) bool { return of != "" && m.Maker() == of }))
			same("those running", ids(x.Running(of)), alive(func(m Meta) bool {
				return of != "" && m.Descriptor.ParentAgentID == of && !ended[m.ID]
			}))
		}
		for kind, is := range map[Kind]func(d Descriptor) bool{
			Subagents:  func(d Descriptor) bool { return d.Type == Subagent },
			Colleagues: func(d Descriptor) bool { return d.Type == Permanent },
			Spawn:      func(d Descriptor) bool { return d.Spawned },
		} {
			want := alive(func(m Meta) bool { return is(m.Descriptor) && !ended[m.ID] })
			live := func(look func(Meta) bool) { x.Live(kind, look) }
			same(string(kind), ids(walked(live, 1<<30)), want)
			if len(want) > 2 {
				same("the first "+string(kind), ids(walked(live, 2)), want[:2])
			}
		}
		facets := 0
		for id, known := range x.known.byID {
			m := known.meta()
			facets += len(x.known.facetsOf(m))
			if called, _ := x.called(m.Handle); called != id {
				t.Fatalf("after %s %s is not found by its handle", what, id)
			}
		}
		for id := range x.known.families {
			if _, ok := x.known.byID[id]; !ok {
				t.Fatalf("after %s a family is kept of %s, which is gone", what, id)
			}
		}
		if n := x.known.facets.Len(); n != facets {
			t.Fatalf("after %s agents are found by %d facets, and have %d", what, n, facets)
		}
		families := map[string]bool{House: true}
		for _, m := range x.All() {
			families[family(m)] = true
		}
		for f := range families {
			if f == "lost" {
				continue
			}
			same("colleagues of "+f, ids(walked(func(look func(Meta) bool) { x.Colleagues(f, look) }, 1<<30)),
				alive(func(m Meta) bool { return m.Descriptor.Type == Permanent && !ended[m.ID] && family(m) == f }))
		}
	}
	check("nothing")
	for step := range 250 {
		by := ""
		if len(made) > 0 && random.IntN(3) > 0 {
			by = made[random.IntN(len(made))]
		}
		d := chat(fmt.Sprint(step))
		what := "a chat"
		switch action := random.IntN(9); {
		case action < 3:
			what, d = "a colleague", Descriptor{Type: Permanent, Name: fmt.Sprint("p", step), CreatedBy: by}
		case action < 5 && by != "":
			what, d = "a child", Descriptor{Type: Subagent, ID: fmt.Sprintf("s%023d", step), Name: "s", ParentAgentID: by}
		case action == 5:
			what, d.Spawned = "a spawned one", true
		case action == 6 && by != "":
			ended[by] = !ended[by]
			x.SetEnded(by, ended[by])
			check(fmt.Sprintf("step %d, an end or a new life", step))
			continue
		case action == 7 && by != "":
			saw := random.IntN(2) == 0
			if x.SawEnded(by, saw); saw {
				ended[by] = true // what was read before an end does not undo it
			}
			check(fmt.Sprintf("step %d, a look at its state", step))
			continue
		case action == 8 && by != "" && len(made) > 20:
			if _, err := x.Remove(by); err != nil {
				t.Fatal(err)
			}
			made = slices.DeleteFunc(made, func(id string) bool { return id == by })
			check(fmt.Sprintf("step %d, a removal", step))
			continue
		}
		made = append(made, create(t, x, d).ID)
		check(fmt.Sprintf("step %d, %s", step, what))
	}
	if now := len(x.All()); now < 3*page {
		t.Errorf("there are %d agents, too few for several pages", now)
	}
	for id, e := range ended {
		if is, known := x.Ended(id); known && is != e {
			t.Errorf("%s has ended: %v, want %v", id, is, e)
		}
	}

	again, found, err := Load(vol, root, slog.New(slog.DiscardHandler))
	if err != nil || finding.Join(found) != nil {
		t.Fatal(found, err)
	}
	defer again.Close()
	if !slices.Equal(ids(again.All()), ids(x.All())) {
		t.Errorf("read again there are %d agents in another order, or others than the %d", len(again.All()), len(x.All()))
	}
}

// Whoever makes or removes an agent hears of any step that fails.
func TestEachFailedStepOfAnAgentIsReported(t *testing.T) {
	kept := []string{"descriptor.kept.write", "descriptor.kept.rename", "state.kept.write", "state.kept.rename"}
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		x, _ := load(t, t.TempDir())
		return func() error { _, err := x.Create(chat("1"), []byte("{}\n")); return err }
	}, kept...)
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		x, _ := load(t, t.TempDir())
		m := create(t, x, chat("1"))
		return func() error { _, err := x.Remove(m.ID); return err }
	}, kept...)

	fails := errors.New("no room")
	x, _ := load(t, t.TempDir())
	if _, err := x.CreateWith(chat("1"), []byte("{}\n"), func(string) error { return fails }); !errors.Is(err, fails) || len(x.All()) != 0 {
		t.Errorf("an agent whose files cannot be filled in: %v, %d agents", err, len(x.All()))
	}
}

// A descriptor that says what cannot be is refused with the place; what is not known is
// kept and told.
func TestWhatADescriptorMustSay(t *testing.T) {
	id := strings.Repeat("a", 24)
	for text, want := range map[string]string{
		`{"type":"permanent","id":"` + id + `"}`:                             `"name" is missing`,
		`{"type":"permanent","name":"x"}`:                                    `"id" is missing`,
		`{"type":"subagent","name":"x","parentAgentId":"` + id + `"}`:        `"id" is missing`,
		`{"type":"subagent","id":"` + id + `","name":"x"}`:                   `"parentAgentId" is missing`,
		`{"type":"subagent","id":"` + id + `","parentAgentId":"` + id + `"}`: `"name" is missing`,
		`{"type":"user","connector":"c"}`:                                    `"channelId" is missing`,
		`{"type":"user","channelId":"c"}`:                                    `"connector" is missing`,
		`{"type":"cron"}`:                                                    `"id" is missing`,
		`{"type":"robot"}`:                                                   `type: found the text "robot", allowed: user, cron`,
		`{"type":"cron","id":"short"}`:                                       `is not an agent id`,
		`{"type":"cron","id":"` + id + `","route":"x"}`:                      `route: found the text "x", allowed: an object`,
		`{"type":"cron","id":"` + id + `","route":{"connector":1}}`:          `route.connector: found 1, allowed: a text`,
		`{"type":"cron","id":"` + id + `","name":3}`:                         `name: found 3, allowed: a text`,
		`[]`:                                  `allowed: one JSON object`,
		`{"type":"cron","id":"` + id + `"} x`: `not JSON`,
		`{"type":"cron",`:                     `not JSON`,
	} {
		_, found := Decode("f", []byte(text))
		if err := finding.Join(found); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}

	text := `{"$schema":"s","type":"cron","id":"` + id + `","mine":1}`
	d, found := Decode("f", []byte(text))
	if d.ID != id || len(found) != 1 || found[0].ID != "descriptor-unknown-key" || found[0].Severity != finding.Info {
		t.Errorf("%+v, %+v, want one remark on the member that is not known", d, found)
	}
	if _, found := Decode("f", []byte(`{"type":"cron","id":"`+id+`"}`)); len(found) != 0 {
		t.Errorf("a good one: %+v", found)
	}
}
