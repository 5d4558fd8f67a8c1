package memory

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// The constants of BM25, as they are usually set: how soon more of a word counts
// no more, and how much a passage's length counts.
const (
	k1 = 1.2
	b  = 0.75
)

const (
	// titleWeight is what a word in the file's name or a heading counts.
	titleWeight = 2
	// beginsWeight is what a word counts that only begins with the one looked for;
	// shorter words than minBegins must be whole.
	beginsWeight = 0.4
	minBegins    = 4
	maxBegins    = 20 // words that one word may stand for
)

// A hit is a passage that was found.
type hit struct {
	file  string
	at    passage
	score float64
}

// An index knows which words occur in which passages.
type index struct {
	files  map[string][]int32 // passages of a file
	docs   []doc
	free   []int32
	ids    map[string]int32 // word -> place in found
	found  [][]posting      // where a word stands; empty: nowhere any more
	sorted []string         // the words, for those that begin with another; nil: to be made
	count  int
	length float64 // of all passages together
}

// A posting is a word in a passage: how often, weighted.
type posting struct {
	doc   int32
	often float32
}

type doc struct {
	file   string
	at     passage
	words  []int32 // each once
	length float64
}

func newIndex() *index {
	return &index{files: map[string][]int32{}, ids: map[string]int32{}}
}

// put takes a file in, in place of what it was.
func (x *index) put(file, text string) {
	x.remove(file)
	name := words(strings.TrimSuffix(file, ".md"))
	for _, p := range passages(text) {
		x.add(file, p, name)
	}
}

func (x *index) add(file string, p passage, name []string) {
	often := map[int32]float32{}
	body := words(p.text)
	for _, w := range body {
		often[x.id(w)]++
	}

	for _, w := range append(words(p.title), name...) {
		often[x.id(w)] += titleWeight
	}

	n := int32(len(x.docs))
	if len(x.free) > 0 {
		n, x.free = x.free[len(x.free)-1], x.free[:len(x.free)-1]
	} else {
		x.docs = append(x.docs, doc{})
	}

	d := doc{file: file, at: p, length: float64(len(body)), words: make([]int32, 0, len(often))}
	for w, f := range often {
		x.found[w] = append(x.found[w], posting{n, f})
		d.words = append(d.words, w)
	}

	x.docs[n] = d
	x.files[file] = append(x.files[file], n)
	x.count++
	x.length += d.length
}

// id is the number of a word. Words keep theirs when nothing holds them any more.
func (x *index) id(w string) int32 {
	id, ok := x.ids[w]
	if !ok {
		id = int32(len(x.found))
		x.ids[strings.Clone(w)] = id
		x.found = append(x.found, nil)
		x.sorted = nil
	}

	return id
}

func (x *index) remove(file string) {
	gone, words := map[int32]bool{}, map[int32]bool{} // a word is in many passages: its places are gone through once
	for _, n := range x.files[file] {
		gone[n] = true
		for _, w := range x.docs[n].words {
			words[w] = true
		}
	}
	for w := range words {
		x.found[w] = slices.DeleteFunc(x.found[w], func(p posting) bool { return gone[p.doc] })
	}

	for _, n := range x.files[file] {
		d := x.docs[n]
		x.docs[n] = doc{}
		x.free = append(x.free, n)
		x.count--
		x.length -= d.length
	}

	delete(x.files, file)
}

// search ranks the passages that have any of the query's words.
func (x *index) search(query string, limit int) []hit {
	if x.count == 0 {
		return nil
	}
	mean := max(x.length/float64(x.count), 1)
	scores := map[int32]float64{}
	asked := words(query)
	slices.Sort(asked)

	for _, w := range slices.Compact(asked) {
		for word, weight := range x.meant(w) {
			id, ok := x.ids[word]
			if !ok || len(x.found[id]) == 0 {
				continue
			}
			found := x.found[id]
			rare := math.Log(1 + (float64(x.count)-float64(len(found))+0.5)/(float64(len(found))+0.5))
			for _, p := range found {
				often := float64(p.often)
				scores[p.doc] += weight * rare * often * (k1 + 1) / (often + k1*(1-b+b*x.docs[p.doc].length/mean))
			}
		}
	}

	hits := make([]hit, 0, len(scores))
	for n, score := range scores {
		hits = append(hits, hit{x.docs[n].file, x.docs[n].at, score})
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.file, a.file), cmp.Compare(a.at.line, b.at.line))
	})

	return hits[:min(limit, len(hits))]
}

// meant are the words that a word of a query stands for, with their weights.
func (x *index) meant(w string) map[string]float64 {
	all := map[string]float64{w: 1}
	if len([]rune(w)) < minBegins {
		return all
	}
	if x.sorted == nil {
		for word := range x.ids {
			x.sorted = append(x.sorted, word)
		}
		slices.Sort(x.sorted)
	}

	i, _ := slices.BinarySearch(x.sorted, w)
	for ; i < len(x.sorted) && strings.HasPrefix(x.sorted[i], w) && len(all) <= maxBegins; i++ {
		if x.sorted[i] != w {
			all[x.sorted[i]] = beginsWeight
		}
	}

	return all
}
