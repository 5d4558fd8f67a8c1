package providers

import "unicode/utf8"

// charsPerToken is the rule of thumb for every model and language. It is floored
// by what the vendor last reported, which is the caller's affair.
const charsPerToken = 4

// imageChars is what an image counts: the length of the placeholder <image>,
// never its bytes.
const imageChars = len("<image>")

// Estimate is about how many tokens req holds.
func Estimate(req *Request) int64 {
	n := utf8.RuneCountInString(req.System)
	for _, t := range req.Tools {
		n += len(t.Name) + utf8.RuneCountInString(t.Description) + len(t.Schema)
	}
	rest := req.Messages
	if req.Kept != nil {
		n += req.Kept.charsOf(rest[:req.Answered])
		rest = rest[req.Answered:]
	}
	for _, m := range rest {
		n += m.Chars()
	}

	return tokens(n)
}

// EstimateText is about how many tokens s holds.
func EstimateText(s string) int64 { return tokens(utf8.RuneCountInString(s)) }

// EstimateUsage stands for the usage that a vendor did not report; chars is the
// length of the answer.
func EstimateUsage(req *Request, chars int) Usage {
	return Usage{Input: Estimate(req), Output: tokens(chars), Estimated: true}
}

func tokens(chars int) int64 { return int64((chars + charsPerToken - 1) / charsPerToken) }

// Chars is the length of the message in characters, images as a placeholder. It
// is counted once.
func (m *Message) Chars() int {
	if n := m.chars.Load(); n > 0 {
		return int(n - 1)
	}
	n := 0
	for _, p := range m.Parts {
		n += partChars(p)
	}

	m.chars.Store(int64(n + 1))

	return n
}

func partChars(p Part) int {
	switch p := p.(type) {
	case Text:
		return utf8.RuneCountInString(p.Text)
	case Reasoning:
		return utf8.RuneCountInString(p.Text)
	case Call:
		return len(p.Name) + utf8.RuneCount(p.Arguments)
	case Result:
		return utf8.RuneCountInString(p.Text) + (len(p.Images)+len(p.Documents))*imageChars
	case Image, Document:
		return imageChars
	}

	return 0
}
