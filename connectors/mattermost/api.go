package mattermost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"daycare/connectors/chat"
)

// An api calls the REST API, version 4.
type api struct {
	*chat.Client
	token string
}

func newAPI(server, token string) *api { return &api{chat.NewClient(server, token), token} }

// An apiError is the server's no.
type apiError struct {
	Name       string
	Status     int
	ID         string // such as api.post.create_post.root_id.app_error
	Text       string
	RetryAfter time.Duration
}

func (e *apiError) Error() string {
	return fmt.Sprintf("mattermost %s: %d %s", e.Name, e.Status, e.Text)
}

// status reports whether err is a no with one of these HTTP statuses.
func status(err error, any ...int) bool {
	var no *apiError
	return errors.As(err, &no) && slices.Contains(any, no.Status)
}

// call makes a call with JSON parameters (nil: none) and reads its result.
func (a *api) call(ctx context.Context, name, method, path string, params, result any) error {
	c, err := chat.Call{Name: name, Method: method, Path: path}.With(params)
	if err != nil {
		return err
	}

	return a.send(ctx, c, result)
}

func (a *api) send(ctx context.Context, c chat.Call, result any) error {
	c.Path, c.Bearer = "/api/v4"+c.Path, a.token
	got, err := a.Do(ctx, c)
	if err != nil {
		return err
	}
	if got.Status/100 != 2 {
		var no struct {
			ID      string `json:"id"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(got.Body, &no); err != nil || no.Message == "" {
			no.Message = http.StatusText(got.Status) // a proxy's page
		}
		e := &apiError{Name: c.Name, Status: got.Status, ID: no.ID, Text: a.Redact(no.Message)}
		if got.Status == http.StatusTooManyRequests {
			reset, _ := strconv.Atoi(got.Header.Get("X-Ratelimit-Reset"))
			e.RetryAfter = max(got.RetryAfter, time.Duration(reset)*time.Second, time.Second)
		}
		return e
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(got.Body, result); err != nil {
		return fmt.Errorf("read result of %s: not what a Mattermost server says", c.Name)
	}

	return nil
}

type user struct {
	ID   string `json:"id"`
	Name string `json:"username"`
	Bot  bool   `json:"is_bot"`
}

func (a *api) self(ctx context.Context) (me user, err error) {
	err = a.call(ctx, "ask who the bot is", http.MethodGet, "/users/me", nil, &me)
	if err == nil && me.ID == "" {
		err = errors.New("ask who the bot is: this is not a Mattermost server")
	}

	return me, err
}

// A room is a channel.
type room struct {
	ID   string `json:"id"`
	Type string `json:"type"` // D direct, G a group of users, O open, P private
	Last int64  `json:"last_post_at"`
}

// joined are the channels that the bot is in.
func (a *api) joined(ctx context.Context) (all []room, err error) {
	err = a.call(ctx, "list channels", http.MethodGet, "/users/me/channels", nil, &all)
	return all, err
}
