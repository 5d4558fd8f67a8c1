package pdf

import (
	"strconv"
	"strings"
	"sync"
)

// standardEncoding is where Adobe's standard encoding differs from Windows-1252.
var standardEncoding = map[int]rune{
	39: '’', 96: '‘', 161: '¡', 162: '¢', 163: '£', 164: '⁄', 165: '¥', 166: 'ƒ', 167: '§', 168: '¤', 169: '\'', 170: '“', 171: '«',
	172: '‹', 173: '›', 174: 'ﬁ', 175: 'ﬂ', 177: '–', 178: '†', 179: '‡', 180: '·', 182: '¶', 183: '•', 184: '‚', 185: '„', 186: '”',
	187: '»', 188: '…', 189: '‰', 191: '¿', 193: '`', 194: '´', 195: 'ˆ', 196: '˜', 197: '¯', 198: '˘', 199: '˙', 200: '¨', 202: '˚',
	203: '¸', 205: '˝', 206: '˛', 207: 'ˇ', 208: '—', 225: 'Æ', 227: 'ª', 232: 'Ł', 233: 'Ø', 234: 'Œ', 235: 'º', 241: 'æ', 245: 'ı',
	248: 'ł', 249: 'ø', 250: 'œ', 251: 'ß',
}

// glyphNames are the names that fonts without a map of their letters use most:
// those of Latin letters and signs. Accented letters are put together below.
var glyphNames = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for _, pair := range strings.Fields(`space:  exclam:! quotedbl:" numbersign:# dollar:$ percent:% ampersand:&
quotesingle:' parenleft:( parenright:) asterisk:*
plus:+ comma:, hyphen:- minus:− period:. slash:/ zero:0 one:1 two:2 three:3 four:4 five:5 six:6 seven:7 eight:8
nine:9 colon:: semicolon:; less:< equal:=
greater:> question:? at:@ bracketleft:[ backslash:\ bracketright:] asciicircum:^ underscore:_ grave:` + "`" +
		` braceleft:{ bar:| braceright:} asciitilde:~
quoteleft:‘ quoteright:’ quotedblleft:“ quotedblright:” quotesinglbase:‚ quotedblbase:„ guillemotleft:«
guillemotright:» guilsinglleft:‹ guilsinglright:›
endash:– emdash:— bullet:• ellipsis:… dagger:† daggerdbl:‡ section:§ paragraph:¶ periodcentered:· copyright:©
registered:® trademark:™ degree:° plusminus:±
multiply:× divide:÷ cent:¢ sterling:£ yen:¥ currency:¤ Euro:€ exclamdown:¡ questiondown:¿ ordfeminine:ª
ordmasculine:º onehalf:½ onequarter:¼ threequarters:¾
onesuperior:¹ twosuperior:² threesuperior:³ mu:µ germandbls:ß AE:Æ ae:æ OE:Œ oe:œ Oslash:Ø oslash:ø Lslash:Ł lslash:ł
Eth:Ð eth:ð Thorn:Þ thorn:þ dotlessi:ı
dotlessj:ȷ fi:fi fl:fl ff:ff ffi:ffi ffl:ffl perthousand:‰ fraction:⁄ florin:ƒ brokenbar:¦ logicalnot:¬ macron:¯
acute:´ dieresis:¨ cedilla:¸ circumflex:ˆ
tilde:˜ breve:˘ dotaccent:˙ ring:˚ hungarumlaut:˝ ogonek:˛ caron:ˇ nbspace:  sfthyphen:- alpha:α beta:β gamma:γ
delta:δ epsilon:ε zeta:ζ eta:η theta:θ iota:ι
kappa:κ lambda:λ nu:ν xi:ξ omicron:ο pi:π rho:ρ sigma:σ tau:τ upsilon:υ phi:φ chi:χ psi:ψ omega:ω Gamma:Γ Delta:Δ
Theta:Θ Lambda:Λ Xi:Ξ Pi:Π Sigma:Σ
Upsilon:Υ Phi:Φ Psi:Ψ Omega:Ω infinity:∞ partialdiff:∂ summation:∑ product:∏ integral:∫ radical:√ approxequal:≈
notequal:≠ lessequal:≤ greaterequal:≥
arrowright:→ arrowleft:← arrowup:↑ arrowdown:↓ arrowdblright:⇒ element:∈ similar:∼ equivalence:≡ proportional:∝
angbracketleft:⟨ angbracketright:⟩
lozenge:◊ openbullet:◦ prime:′ visiblespace:␣`) {
		name, text, _ := strings.Cut(pair, ":")
		m[name] = text
	}

	m["space"], m["nbspace"] = " ", " "
	return m
})

// accents are the names that follow a letter's in that of an accented one.
var accents = map[string]rune{
	"acute": '\u0301', "grave": '\u0300', "circumflex": '\u0302', "tilde": '\u0303', "dieresis": '\u0308',
	"ring": '\u030A', "cedilla": '\u0327',
	"caron": '\u030C', "breve": '\u0306', "macron": '\u0304', "ogonek": '\u0328', "dotaccent": '\u0307',
	"hungarumlaut": '\u030B', "commaaccent": '\u0326',
}

// glyphText is the text that the name of a glyph stands for; "" if it does not tell.
func glyphText(glyph string) string {
	glyph, _, _ = strings.Cut(glyph, ".") // "a.alt"
	if s, ok := glyphNames()[glyph]; ok {
		return s
	}
	if len(glyph) == 1 {
		return glyph
	}
	if accent, ok := accents[glyph[min(1, len(glyph)):]]; ok {
		return glyph[:1] + string(accent)
	}

	for _, prefix := range []string{"uni", "u"} {
		digits, ok := strings.CutPrefix(glyph, prefix)
		if !ok || len(digits) < 4 || len(digits) > 6 {
			continue
		}
		if n, err := strconv.ParseUint(digits, 16, 32); err == nil {
			return string(rune(n))
		}
	}

	if parts := strings.Split(glyph, "_"); len(parts) > 1 && len(parts) < 5 { // "f_f_i"
		var all string
		for _, part := range parts {
			all += glyphText(part)
		}
		return all
	}

	return ""
}
