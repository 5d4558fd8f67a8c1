package xmpp

import (
	"bytes"
	"encoding/xml"
	"slices"
)

// Namespaces of what is used of XMPP.
const (
	nsClient  = "jabber:client"
	nsStream  = "http://etherx.jabber.org/streams"
	nsTLS     = "urn:ietf:params:xml:ns:xmpp-tls"
	nsSASL    = "urn:ietf:params:xml:ns:xmpp-sasl"
	nsBind    = "urn:ietf:params:xml:ns:xmpp-bind"
	nsSM      = "urn:xmpp:sm:3"
	nsPing    = "urn:xmpp:ping"
	nsInfo    = "http://jabber.org/protocol/disco#info"
	nsItems   = "http://jabber.org/protocol/disco#items"
	nsMUC     = "http://jabber.org/protocol/muc"
	nsMUCUser = "http://jabber.org/protocol/muc#user"
	nsStable  = "http://jabber.org/protocol/muc#stable_id"
	nsOwner   = "http://jabber.org/protocol/muc#owner"
	nsForm    = "jabber:x:data"
	nsDelay   = "urn:xmpp:delay"
	nsForward = "urn:xmpp:forward:0"
	nsCarbons = "urn:xmpp:carbons:2"
	nsMAM     = "urn:xmpp:mam:2"
	nsRSM     = "http://jabber.org/protocol/rsm"
	nsSID     = "urn:xmpp:sid:0"
	nsReceipt = "urn:xmpp:receipts"
	nsStates  = "http://jabber.org/protocol/chatstates"
	nsHints   = "urn:xmpp:hints"
	nsCorrect = "urn:xmpp:message-correct:0"
	nsRetract = "urn:xmpp:message-retract:1"
	nsFasten  = "urn:xmpp:fasten:0"
	nsReply   = "urn:xmpp:reply:0"
	nsFall    = "urn:xmpp:fallback:0"
	nsReact   = "urn:xmpp:reactions:0"
	nsOOB     = "jabber:x:oob"
	nsUpload  = "urn:xmpp:http:upload:0"
	nsOMEMO   = "eu.siacs.conversations.axolotl"
	nsOMEMO2  = "urn:xmpp:omemo:2"
	nsErrors  = "urn:ietf:params:xml:ns:xmpp-stanzas"
)

// An element is one XML element: a stanza, or a part of one.
type element struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Kids    []element  `xml:",any"`
}

// node makes an element with pairs of attributes; those with an empty value are left out.
func node(space, name string, attrs ...string) element {
	e := element{XMLName: xml.Name{Space: space, Local: name}}
	for i := 0; i+1 < len(attrs); i += 2 {
		if attrs[i+1] != "" {
			e.Attrs = append(e.Attrs, xml.Attr{Name: xml.Name{Local: attrs[i]}, Value: attrs[i+1]})
		}
	}

	return e
}

// with returns e with more children.
func (e element) with(kids ...element) element {
	e.Kids = append(slices.Clip(e.Kids), kids...)
	return e
}

// saying returns e with a text.
func (e element) saying(text string) element {
	e.Text = text
	return e
}

func (e element) is(space, name string) bool { return e.XMLName == xml.Name{Space: space, Local: name} }

func (e element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}

	return ""
}

// kid is the first child with a name.
func (e element) kid(space, name string) (element, bool) {
	for _, k := range e.Kids {
		if k.is(space, name) {
			return k, true
		}
	}

	return element{}, false
}

func (e element) has(space, name string) bool {
	_, ok := e.kid(space, name)
	return ok
}

// down is the child of a child and so on; the zero element if there is none.
func (e element) down(path ...xml.Name) element {
	for _, name := range path {
		var ok bool
		if e, ok = e.kid(name.Space, name.Local); !ok {
			return element{}
		}
	}

	return e
}

// bytes is the element as it is sent in a stream of clients. What XML does not allow in a
// text becomes U+FFFD.
func (e element) bytes() []byte {
	var b bytes.Buffer
	e.write(&b, nsClient)
	return b.Bytes()
}

func (e element) write(b *bytes.Buffer, outer string) {
	b.WriteString("<" + e.XMLName.Local)
	if space := e.XMLName.Space; space != "" && space != outer {
		b.WriteString(" xmlns='" + space + "'")
		outer = space
	}
	for _, a := range e.Attrs {
		b.WriteString(" " + a.Name.Local + "='")
		_ = xml.EscapeText(b, []byte(a.Value)) // a buffer takes everything
		b.WriteByte('\'')
	}

	if e.Text == "" && len(e.Kids) == 0 {
		b.WriteString("/>")
		return
	}
	b.WriteByte('>')
	_ = xml.EscapeText(b, []byte(e.Text))
	for _, k := range e.Kids {
		k.write(b, outer)
	}
	b.WriteString("</" + e.XMLName.Local + ">")
}
