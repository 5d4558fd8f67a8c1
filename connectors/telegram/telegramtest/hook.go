package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// setHook begins to post updates to a webhook, or ends it ("").
func (s *Server) setHook(url, secret string) {
	s.mu.Lock()
	same := url == s.hook && secret == s.secret
	s.hook, s.secret = url, secret
	s.updates.touch()
	stop := s.stop
	if same {
		s.mu.Unlock()
		return
	}

	s.stop = nil
	s.mu.Unlock()
	if stop != nil {
		stop()
		s.posting.Wait()
	}
	if url == "" {
		return
	}

	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	s.stop = cancel
	s.mu.Unlock()
	s.posting.Go(func() { s.post(ctx, url, secret) })
}

// post posts updates in order, each until it is answered with 2xx.
func (s *Server) post(ctx context.Context, url, secret string) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx.Err() == nil && s.Wait(ctx, func() bool { return s.Backlog() > 0 }) {
		s.mu.Lock()
		first := s.updates.waiting[0]
		s.mu.Unlock()
		body, err := json.Marshal(first.body)
		if err != nil {
			panic(err)
		}

		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if err != nil || resp.StatusCode/100 != 2 {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}

		s.mu.Lock()
		s.updates.waiting = s.updates.waiting[1:]
		s.updates.touch()
		s.mu.Unlock()
	}
}
