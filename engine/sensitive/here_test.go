package sensitive

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The table of this machine has the home of who runs daycare, also where it is none of those
// in /etc/passwd, and each home once.
func TestTheTableOfThisMachine(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	table := Here()
	if !table.IsHome(home) || !table.Later(home, ".profile") || !table.Secret(home, ".ssh") {
		t.Errorf("%s is no home", home)
	}

	again := table.And(home).And(home)
	if !slices.Equal(again.homes, table.homes) {
		t.Errorf("homes are %v and, with one that is known, %v", table.homes, again.homes)
	}
	if all := people().homes; slices.Contains(all, home) {
		t.Errorf("the homes of people are %v: one table has changed another", all)
	}

	t.Setenv("HOME", "")
	if table := Here(); table.IsHome("") || table.IsHome(".") || !slices.Equal(table.homes, people().homes) {
		t.Errorf("without a home: %v", table.homes)
	}
}

// Programs are looked for in the folders of a PATH that are no part of where daycare runs.
func TestFoldersOfPrograms(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real, link, gone := filepath.Join(top, "real"), filepath.Join(top, "link"), filepath.Join(top, "gone")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}

	t.Chdir(top)
	got := foldersIn(real + "/:" + link + "::.:real:" + gone + "/x/..")
	if want := []string{real, real, gone}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !(Table{}).Programs(got...).Later(top, "real") || (Table{}).Programs(got...).Later(real, "tool") {
		t.Error("it is the folder that runs something later, by whatever is put into it")
	}
}
