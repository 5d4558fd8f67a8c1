package control

import (
	"net/http"
	"time"
)

// Bodies of answers.
type (
	tasksBody struct {
		Tasks []Task `json:"tasks"`
	}
	runsBody struct {
		Runs []TaskRun `json:"runs"`
	}
	slotBody struct {
		Slot time.Time `json:"slot"`
	}
)

// clocks is the routes of Schedules.
type clocks struct {
	*api
	Schedules
}

func (c clocks) tasks(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	list, err := c.Tasks(r.Context())
	return http.StatusOK, tasksBody{some(list)}, err
}

func (c clocks) task(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	t, err := c.Task(r.Context(), r.PathValue("slug"))
	return http.StatusOK, t, err
}

func (c clocks) addTask(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var change TaskChange
	if err := decode(w, r, maxBody, &change); err != nil {
		return 0, nil, err
	}
	if change.Prompt == nil || *change.Prompt == "" {
		return 0, nil, &Invalid{Field: "prompt", Reason: "is missing", Hint: "say what the agent shall do"}
	}
	t, err := c.AddTask(r.Context(), change)
	return http.StatusCreated, t, err
}

func (c clocks) changeTask(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var change TaskChange
	if err := decode(w, r, maxBody, &change); err != nil {
		return 0, nil, err
	}
	t, err := c.ChangeTask(r.Context(), r.PathValue("slug"), change)
	return http.StatusOK, t, err
}

func (c clocks) removeTask(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	trash, err := c.RemoveTask(r.Context(), r.PathValue("slug"))
	return http.StatusOK, trashBody{trash}, err
}

func (c clocks) runTask(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	slot, err := c.RunTask(r.Context(), r.PathValue("slug"))
	return http.StatusAccepted, slotBody{slot}, err
}

func (c clocks) taskRuns(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	limit, err := runLimit(r)
	if err != nil {
		return 0, nil, err
	}
	runs, err := c.TaskRuns(r.Context(), r.PathValue("slug"), limit)
	return http.StatusOK, runsBody{some(runs)}, err
}

func (c clocks) heartbeat(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	h, err := c.Heartbeat(r.Context())
	h.Prompts = some(h.Prompts)
	return http.StatusOK, h, err
}

func (c clocks) addPrompt(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var p PromptChange
	if err := decode(w, r, maxBody, &p); err != nil {
		return 0, nil, err
	}
	made, err := c.AddPrompt(r.Context(), p)
	return http.StatusCreated, made, err
}

func (c clocks) removePrompt(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	trash, err := c.RemovePrompt(r.Context(), r.PathValue("slug"))
	return http.StatusOK, trashBody{trash}, err
}

func (c clocks) runHeartbeat(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	slot, err := c.RunHeartbeat(r.Context())
	return http.StatusAccepted, slotBody{slot}, err
}

func (c clocks) heartbeatRuns(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	limit, err := runLimit(r)
	if err != nil {
		return 0, nil, err
	}
	runs, err := c.HeartbeatRuns(r.Context(), limit)
	return http.StatusOK, runsBody{some(runs)}, err
}

// runLimit is how many runs are asked for.
func runLimit(r *http.Request) (int, error) {
	n, err := number(r, "limit", 20, 1, maxPage)
	return int(n), err
}
