package terminal

import (
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"daycare/connectors/terminal/theme"
)

type pageName int

const (
	homePage pageName = iota
	talkPage
)

// A Model is the whole UI. It is changed by Update alone, in one goroutine.
type Model struct {
	environment
	screen screen
	conn   connection
	world  *world
	ring   ring

	page pageName
	home home
	talk talk
	over overlay // what is open over the page, or nil

	pressed
	receiving deadline // of /receive; zero while it does not run
	welcome
}

// An environment is what the UI uses beside the terminal.
type environment struct {
	opts       Options
	link       follower
	call       caller
	background background
	memory     *memory
}

// pressed are keys that wait for a second one or must not act twice.
type pressed struct {
	leaving  time.Time // Ctrl-C was pressed
	stopping time.Time // Esc was pressed
	emptied  time.Time // the last question was answered, and its dialog closed by itself
}

// A welcome is the wizard, which is offered to newcomers once.
type welcome struct {
	offered   bool // the wizard was opened by itself
	returning bool // the user was here before
}

// follower is the part of the link that the model steers.
type follower interface{ follow(agent string) }

// An overlay opens over a page and has the keys until it is done.
type overlay interface {
	key(m *Model, k tea.KeyPressMsg) (done bool, cmd tea.Cmd)
	// lines draw it, at most height of them.
	lines(m *Model, width, height int) []string
	// help is the help line while it is open.
	help(m *Model) string
}

const (
	// again is how long a second key counts as one.
	again = 3 * time.Second
	// wakesEvery is how often the clocks are read while Home is open, in seconds.
	wakesEvery = 20
)

type tick time.Time

func newModel(o Options, l follower, call caller, bg background) *Model {
	mem := &memory{dir: o.Hints}
	m := &Model{environment: environment{opts: o, link: l, call: call, background: bg, memory: mem},
		world: newWorld(), talk: newTalk(mem.typed())}
	m.screen = screen{width: 80, height: 24, now: time.Now(), mouse: true, terminal: theme.Terminal{Dark: !lightByEnvironment()}}
	m.conn.since = m.screen.now
	m.screen.dress()
	m.talk.input.dress(m.screen.theme)
	if h, known := mem.load(); known {
		h.restore(m)
	}
	m.talk.input.restore(m.talk.agents.current().draft)
	return m
}

// Init begins the clock and asks for the background.
func (m *Model) Init() tea.Cmd { return tea.Batch(tea.RequestBackgroundColor, ticking()) }

// ticking is the clock of ages and elapsed times; nothing else is animated, so that
// a slow line has nothing to carry while nothing happens.
func ticking() tea.Cmd { return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tick(t) }) }

// Update is where every message comes in.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		return m, paste(m, msg)
	case tea.MouseWheelMsg:
		return m, wheel(m, msg)
	case tea.MouseClickMsg:
		return m, click(m, msg)
	case tea.WindowSizeMsg:
		m.screen.width, m.screen.height = msg.Width, msg.Height
		return m, nil
	case tea.BackgroundColorMsg:
		m.screen.terminal.Dark = msg.IsDark()
	case tea.ColorProfileMsg:
		m.screen.terminal.Sixteen = msg.Profile < colorprofile.ANSI256
	case tick:
		return m, m.tick(time.Time(msg))
	case answer:
		return m, msg.take(m)
	default:
		return m, nil
	}

	m.screen.dress() // the terminal reported its background or its colours
	m.talk.input.dress(m.screen.theme)
	return m, nil
}

// tick is once a second.
func (m *Model) tick(now time.Time) tea.Cmd {
	m.screen.now = now
	m.screen.fade()
	if m.receiving.over(now) {
		m.screen.say("no agent answered or asked while /receive waited")
	}
	m.memory.save(hintsOf(m))
	cmds := []tea.Cmd{ticking()}
	if m.page == homePage {
		cmds = append(cmds, m.home.wanted(m))
		if m.conn.up && now.Unix()%wakesEvery == 0 {
			cmds = append(cmds, m.call.wakes())
		}
	}

	return tea.Batch(cmds...)
}

// arrive decides where a user begins: where they left off, else at Home, and with
// nobody else there in the conversation with their own agent.
func (m *Model) arrive(first bool) tea.Cmd {
	if m.talk.agents.own == "" || m.world.get(m.talk.agents.own) == nil {
		m.talk.agents.own = ""
		for _, a := range m.world.order {
			if a.Type == "user" && a.Name == ownName {
				m.talk.agents.own = a.ID
				break
			}
		}
	}
	if m.page == talkPage && m.talk.agents.shown != "" && m.world.get(m.talk.agents.shown) == nil {
		gone := m.talk.agents.shown
		next := m.ring.before(m.world, gone)
		m.ring.forget(gone)
		return m.show(next)
	}
	switch {
	case !first:
		return nil
	case !m.returning && len(m.world.order) > 1:
		m.page = homePage
		return nil
	case !m.returning:
		return m.show(m.talk.agents.own)
	case m.page == talkPage:
		return m.show(m.talk.agents.shown)
	}

	return nil
}

// ownName is the name of the agent that a user's first message makes
// (engine/address.Own).
const ownName = "main"
