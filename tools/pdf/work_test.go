//go:build !race

package pdf

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// pageOf is a file with one page, its contents and its other objects.
func pageOf(contents, objects string) []byte {
	return fmt.Appendf(nil, "%%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Kids[3 0 R]>> endobj\n"+
		"3 0 obj <</Type/Page/Contents %s/Resources<</Font<</F 5 0 R>>>>>> endobj\n%s\ntrailer <</Root 1 0 R>>", contents, objects)
}

func streamOf(number int, entries, data string) string {
	return fmt.Sprintf("%d 0 obj <<%s/Length %d>> stream\n%s\nendstream endobj\n", number, entries, len(data), data)
}

// A file takes no more memory than its limits allow, and ends, whatever it repeats.
func TestWhatAFileRepeatsIsCounted(t *testing.T) {
	const n = 4 << 20
	again := func(times int) string { return "[" + strings.Repeat("4 0 R ", times) + "]" }
	for name, tt := range map[string]struct {
		file []byte
		want error
	}{
		"a stream as it is":       {pageOf(again(400), streamOf(4, "", strings.Repeat(" ", n))), ErrTooLarge},
		"a stream of digits":      {pageOf(again(100), streamOf(4, "/Filter/AHx", strings.Repeat("20", n/2))), ErrTooLarge},
		"a stream of no digits":   {pageOf(again(200), streamOf(4, "/Filter/AHx", strings.Repeat(" ", n))), ErrTooLarge},
		"a stream of no letters":  {pageOf(again(200), streamOf(4, "/Filter/A85", strings.Repeat(" ", n))), ErrTooLarge},
		"an object that is large": {pageOf(again(1000), "4 0 obj "+strings.Repeat("a", n)+" endobj\n"), ErrTooLarge},
		"a code that stands for much": {pageOf("4 0 R", streamOf(4, "", "BT /F 1 Tf ("+strings.Repeat("A", 300)+") Tj")+
			"5 0 obj <</Type/Font/ToUnicode 6 0 R>> endobj\n"+
			streamOf(6, "", "1 beginbfchar <41> <"+strings.Repeat("0041", n/4)+"> endbfchar")), nil},
		"rows that are wide": {pageOf("4 0 R", streamOf(4, "/Filter/LZWDecode/DecodeParms<</Predictor 12/Columns 8000/Colors 8000"+
			"/BitsPerComponent 500>>", "\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01")), nil},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(context.Background(), tt.file, Options{MaxChars: 200_000})
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, tt.want) || used > 500<<20 {
			t.Errorf("%s: %d bytes take %d MB, error %v", name, len(tt.file), used>>20, err)
		}
	}
}
