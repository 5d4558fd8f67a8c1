package whatsapp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"slices"
	"time"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// An api calls the Graph API for one number.
type api struct {
	*chat.Client
	token, number string
}

func newAPI(base, token, secret, number string) *api {
	return &api{chat.NewClient(cmp.Or(base, officialAPI), token, secret), token, number}
}

// An apiError is Meta's no.
type apiError struct {
	Name       string
	Status     int
	Code       int
	Text       string
	RetryAfter time.Duration
}

func (e *apiError) Error() string {
	return fmt.Sprintf("whatsapp %s: %d (%d) %s", e.Name, e.Status, e.Code, e.Text)
}

// Codes of Meta's errors.
const (
	badToken       = 190
	appLimit       = 4
	businessLimit  = 80007
	numberLimit    = 130429
	pairLimit      = 131056 // too many to one user
	spamLimit      = 131048
	undeliverable  = 131026 // no WhatsApp, or an old one
	windowClosed   = 131047 // the user did not write for 24 hours
	notInTestList  = 131030
	unknownType    = 131051
	badParameter   = 100
	badMessage     = 131009
	noTemplate     = 132001
	notYetApproved = 132015
)

// code reports whether err is a no with one of these codes.
func code(err error, any ...int) bool {
	var no *apiError
	return errors.As(err, &no) && slices.Contains(any, no.Code)
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
	c.Bearer = a.token
	got, err := a.Do(ctx, c)
	if err != nil {
		return err
	}
	if got.Status != http.StatusOK {
		var no struct {
			Error struct {
				Message string `json:"message"`
				Code    int    `json:"code"`
				Data    struct {
					Details string `json:"details"`
				} `json:"error_data"`
			} `json:"error"`
		}
		if err := json.Unmarshal(got.Body, &no); err != nil || no.Error.Message == "" {
			no.Error.Message = http.StatusText(got.Status) // a proxy's page
		}
		text := a.Redact(cmp.Or(no.Error.Data.Details, no.Error.Message))
		return &apiError{Name: c.Name, Status: got.Status, Code: no.Error.Code, Text: text, RetryAfter: got.RetryAfter}
	}

	return got.Read(c.Name, result)
}

// A number is what Meta says of the number that the bot has.
type number struct {
	Shown   string `json:"display_phone_number"`
	Name    string `json:"verified_name"`
	Quality string `json:"quality_rating"`
}

func (a *api) self(ctx context.Context) (me number, err error) {
	err = a.call(ctx, "ask about the number", http.MethodGet, "/"+a.number+"?fields=display_phone_number,verified_name,quality_rating",
		nil, &me)
	return me, err
}

// upload gives Meta a file, and returns its id.
func (a *api) upload(ctx context.Context, f message.File) (id string, err error) {
	content, err := os.Open(f.Path)
	if err != nil {
		return "", &message.NotSent{Final: true, Err: fmt.Errorf("open file %s to send: %w", f.Name, err)}
	}
	defer content.Close()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	err = errors.Join(form.WriteField("messaging_product", "whatsapp"), form.WriteField("type", f.MimeType))
	head := textproto.MIMEHeader{}
	head.Set("Content-Disposition", multipart.FileContentDisposition("file", f.Name))
	head.Set("Content-Type", cmp.Or(f.MimeType, "application/octet-stream"))
	part, partErr := form.CreatePart(head)
	if err = errors.Join(err, partErr); err == nil {
		_, err = io.Copy(part, content)
	}
	if err = errors.Join(err, form.Close()); err != nil {
		return "", fmt.Errorf("encode file %s: %w", f.Name, err)
	}
	var done struct {
		ID string `json:"id"`
	}
	err = a.send(ctx, chat.Call{Name: "upload a file", Path: "/" + a.number + "/media", Media: form.FormDataContentType(), Body: &b,
		Within: uploadTime}, &done)

	return done.ID, err
}

// uploadTime is how long a file may take; the engine gives a part two minutes.
const uploadTime = 100 * time.Second

// open opens a file that somebody sent. The token goes to Meta and nowhere else.
func (a *api) open(ctx context.Context, id string) (io.ReadCloser, error) {
	if !graphID.MatchString(id) {
		return nil, errors.New("download file: its id is not one of Meta's")
	}
	var at struct {
		URL string `json:"url"`
	}
	if err := a.call(ctx, "find a file", http.MethodGet, "/"+id+"?phone_number_id="+a.number, nil, &at); err != nil {
		return nil, err
	}
	if !a.Owns(at.URL, ".fbsbx.com", ".facebook.com", ".whatsapp.net") {
		return nil, errors.New("download file: its address is not Meta's")
	}

	return a.Download(ctx, at.URL, a.token)
}
