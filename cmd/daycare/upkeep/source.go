package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"daycare/engine/lan"
)

// A source is where a release is: a folder, or an address that ends like one.
type source struct {
	dir  string // path or URL, without / at its end
	only string // the one archive that is meant; "": that of this machine
	web  bool
}

// newSource reads what --from says: a folder or an archive in it, as a path or a URL.
func newSource(from string) (source, error) {
	s := source{dir: strings.TrimSuffix(from, "/")}
	if scheme, _, ok := strings.Cut(from, "://"); ok {
		s.web = true
		if err := allowed(from); err != nil {
			return s, fmt.Errorf("%s: %w", scheme, err)
		}
	}
	if strings.HasSuffix(s.dir, ".tar.gz") {
		cut := strings.LastIndex(s.dir, "/")
		s.only = s.dir[cut+1:]
		s.dir = s.dir[:max(cut, 0)]
		if cut < 0 {
			s.dir = "."
		}
	}

	return s, nil
}

// allowed reports why nothing is fetched from an address: on the way to this machine others could
// change it.
func allowed(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	if u.Scheme == "https" || u.Scheme == "http" && lan.Loopback(u.Hostname()) {
		return nil
	}

	return errors.New("releases are fetched over https only")
}

// fetchTimeout bounds one file of a release.
const fetchTimeout = 10 * time.Minute

// fetch reads a file of the release, of at most limit bytes.
func (s source) fetch(ctx context.Context, name string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := s.open(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}

	return data, nil
}

func (s source) open(ctx context.Context, name string) (io.ReadCloser, error) {
	if !s.web {
		return os.Open(filepath.Join(s.dir, name))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.dir+"/"+url.PathEscape(name), nil)
	if err != nil {
		return nil, err
	}

	client := http.Client{CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > 5 {
			return errors.New("too many redirects")
		}
		return allowed(req.URL.String())
	}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%s returned %s", s.dir, resp.Status)
	}

	return resp.Body, nil
}
