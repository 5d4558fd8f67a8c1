package terminal

import (
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/theme"
	"daycare/engine/control"
	"daycare/engine/event"
)

type pageName int

const (
	homePage pageName = iota
	talkPage
)

// A Model is the whole UI. It is changed by Update alone, in one goroutine.
type Model struct {
	opts       Options
	link       follower
	call       caller
	background background
	memory     *memory

	screen screen
	conn   connection
	world  *world
	ring   ring

	page pageName
	home home
	talk talk
	over overlay // what is open over the page, nil: nothing

	prompts
	returning bool // the person was here before
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

// A connection is how the link stands.
type connection struct {
	up       bool
	was      bool // it was up before
	since    time.Time
	err      error
	listed   bool // the list of agents was read
	stale    bool // the snapshots are out of date
	reading  bool // they are being read
	readEach time.Duration
}

// prompts are what waits for a second key, and what was said last.
type prompts struct {
	leaving   time.Time // Ctrl-C was pressed
	stopping  time.Time // Esc was pressed
	emptied   time.Time // the last question was answered, and its dialog closed by itself
	receiving time.Time // /receive waits until then
	offered   bool      // the wizard was opened by itself
	flash     string
	bad       bool // flash is what went wrong
	flashed   time.Time
}

const (
	// again is how long a second key counts as one.
	again = 3 * time.Second
	// flashFor is how long what was done is told; what went wrong, twice as long.
	flashFor = 5 * time.Second
	// freshest is how often the list of agents is read at most.
	freshest = 400 * time.Millisecond
	// wakesEvery is how often the clocks are read while Home is open, in seconds.
	wakesEvery = 20
)

type (
	tick     time.Time
	freshDue struct{}
)

func newModel(o Options, l follower, call caller, bg background) *Model {
	mem := &memory{dir: o.Hints}
	m := &Model{opts: o, link: l, call: call, background: bg, memory: mem, world: newWorld(), talk: newTalk(mem.typed())}
	m.screen = screen{width: 80, height: 24, now: time.Now(), mouse: true, terminal: theme.Terminal{Dark: !lightByEnvironment()}}
	m.conn.since = m.screen.now
	m.dress()
	m.recall()
	m.talk.input.restore(m.talk.agents.current().draft)
	return m
}

// dress puts on the theme for the terminal.
func (m *Model) dress() {
	m.screen.theme = theme.New(m.screen.terminal)
	m.screen.render = markdown.New(m.screen.theme)
	m.talk.input.dress(m.screen.theme)
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
		m.dress()
		return m, nil
	case tea.ColorProfileMsg:
		m.screen.terminal.Sixteen = msg.Profile < colorprofile.ANSI256
		m.dress()
		return m, nil
	case tick:
		return m, m.tick(time.Time(msg))
	}
	return m, m.answered(msg)
}

// answered takes what the link and the API say.
func (m *Model) answered(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case online:
		return m.online()
	case offline:
		if m.conn.up {
			m.flash = "" // how things stand now is more urgent than what was said before
		}
		m.conn.up, m.conn.err = false, msg.err
	case heardAll:
		return m.heardAll(msg)
	case heardOne:
		return m.talk.agents.heard(m, msg)
	case freshDue:
		return m.freshen()
	case fetchDue:
		return m.talk.agents.fetch(m, msg.agent)
	case agentsRead:
		return m.takeAgents(msg)
	case asksRead, statusRead, iconsRead, commandsRead, wakesRead:
		return m.takeSnapshot(msg)
	case missedRead, setupOffered, modelsListed, setupApplied:
		return m.takeSetup(msg)
	case expanded:
		return m.takeExpanded(msg)
	case historyRead:
		return m.talk.agents.takePage(m, msg)
	case inboxRead:
		m.talk.agents.takeInbox(msg)
	case draftRead:
		m.talk.agents.get(msg.agent).text.Draft(msg.draft, m.screen.now)
	case saidRead:
		m.world.said(msg)
	case sent:
		return m.talk.takeSent(m, msg)
	case created:
		return m.takeCreated(msg)
	case killed:
		return m.takeKilled(msg)
	case decided:
		return m.takeDecided(msg)
	case tookBack:
		m.talk.putBack(msg.text)
		return m.call.inbox(msg.agent)
	case shellRan:
		return m.takeShell(msg)
	case edited:
		m.takeEdited(msg)
	case panelRead:
		m.over = &panel{title: msg.title, text: msg.lines}
	case chooserRead:
		m.over = msg.chooser
	case did:
		m.say1(msg.what)
		return tea.Batch(m.conn.outdate(), m.talk.agents.soon(m, m.talk.agents.shown))
	case failed:
		m.fail(msg.what, msg.err)
	}
	return nil
}

// takeSnapshot takes over what the daemon says of itself and of all agents.
func (m *Model) takeSnapshot(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case asksRead:
		m.world.ask(msg.asks)
		return m.asksChanged()
	case statusRead:
		m.world.status = msg.status
		return tea.Batch(m.readMissed(), m.offerSetup())
	case iconsRead:
		m.world.icons = msg.icons
	case commandsRead:
		m.world.commands = msg.list
	case wakesRead:
		m.world.wakes = msg.at
	}
	return nil
}

// say1 tells the person something, for a moment.
func (m *Model) say1(text string) {
	m.flash, m.bad, m.flashed = text, false, m.screen.now
}

// fail tells the person what went wrong, and what to do.
func (m *Model) fail(what string, err error) {
	text := err.Error()
	var api *control.APIError
	if errors.As(err, &api) && api.Hint != "" {
		text += " (" + api.Hint + ")"
	}
	if errors.Is(err, control.ErrNotRunning) {
		text = "daycare is not running (Ctrl+R starts it)"
	}
	if what != "" {
		text = what + ": " + text
	}
	m.flash, m.bad, m.flashed = text, true, m.screen.now
}

// tick is once a second.
func (m *Model) tick(now time.Time) tea.Cmd {
	m.screen.now = now
	keep := flashFor
	if m.bad {
		keep *= 2
	}
	if now.Sub(m.flashed) > keep {
		m.flash = ""
	}
	m.waited()
	m.memory.save(m.remember())
	cmds := []tea.Cmd{ticking()}
	if m.page == homePage {
		cmds = append(cmds, m.home.wanted(m))
		if m.conn.up && now.Unix()%wakesEvery == 0 {
			cmds = append(cmds, m.call.wakes())
		}
	}
	return tea.Batch(cmds...)
}

// online begins afresh: what happened meanwhile was not heard.
func (m *Model) online() tea.Cmd {
	m.conn = connection{up: true, was: true, since: m.screen.now}
	cmds := []tea.Cmd{m.call.agents(), m.call.asks(), m.call.status(), m.call.wakes(), m.call.icons(), m.call.commands()}
	for id, c := range m.talk.agents.all {
		if id == "" || !c.text.Loaded() || id == m.talk.agents.shown {
			continue
		}
		cmds = append(cmds, m.call.history(id, 0, newest))
	}
	if m.page == talkPage {
		m.link.follow(m.talk.agents.shown)
		if m.talk.agents.shown != "" {
			cmds = append(cmds, m.call.history(m.talk.agents.shown, 0, newest), m.call.inbox(m.talk.agents.shown),
				m.call.draft(m.talk.agents.shown))
		}
	}
	return tea.Batch(cmds...)
}

func (m *Model) heardAll(msg heardAll) tea.Cmd {
	var cmds []tea.Cmd
	stale := false
	for _, e := range msg.events {
		old, call := m.world.event(e)
		stale = stale || old
		if call {
			cmds = append(cmds, m.call.asks(), tea.Raw("\a"))
		}
		if e.Type == event.PermissionDecided {
			cmds = append(cmds, m.asksChanged(), m.call.asks())
		}
		if e.Type == event.ConfigReloaded {
			stale = true // agents that follow the settings have another model
			cmds = append(cmds, m.call.status())
		}
		cmds = append(cmds, m.watched(e.Agent, e.Type))
	}
	if stale {
		cmds = append(cmds, m.conn.outdate())
	}
	return tea.Batch(cmds...)
}

// outdate has the snapshots read again soon, however many ask for it.
func (n *connection) outdate() tea.Cmd {
	if n.stale {
		return nil
	}
	n.stale = true
	return tea.Tick(max(freshest, 5*n.readEach), func(time.Time) tea.Msg { return freshDue{} })
}

func (m *Model) freshen() tea.Cmd {
	if m.conn.reading {
		return tea.Tick(freshest, func(time.Time) tea.Msg { return freshDue{} })
	}
	m.conn.stale, m.conn.reading = false, true
	return m.call.agents()
}

// takeAgents takes over the list of agents.
func (m *Model) takeAgents(msg agentsRead) tea.Cmd {
	m.conn.reading, m.conn.readEach = false, msg.took
	if msg.err != nil {
		return nil
	}
	first := m.world.order == nil
	m.conn.listed = true
	m.world.read(msg.agents)
	if m.page == talkPage {
		m.world.looked(m.talk.agents.shown)
	}
	cmds := []tea.Cmd{m.arrive(first), m.offerSetup()}
	if m.page == homePage {
		cmds = append(cmds, m.home.wanted(m))
	}
	return tea.Batch(cmds...)
}

// arrive decides where a person begins: where they left off, else at Home, and with
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

// ownName is the name of the agent that a person's first message makes
// (engine/address.Own).
const ownName = "main"
