// Package crond runs shell commands on a timetable and keeps a history of the
// outcomes that can be inspected over HTTP.
//
// A timetable entry has five fields in the classical order (minute, hour, day
// of month, month, day of week). Jobs never overlap with themselves: when a run
// is still in progress as the next one falls due, the new run is skipped and
// counted, because on our machines a pile-up of half-finished backups has
// caused far more trouble than a missed one.
package crond

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand"
	"net/http"
	"os/exec"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// field describes the permitted range of one column of a timetable entry.
type field struct {
	name     string
	min, max int
	aliases  []string
}

var fields = [5]field{
	{name: "minute", min: 0, max: 59},
	{name: "hour", min: 0, max: 23},
	{name: "day of month", min: 1, max: 31},
	{name: "month", min: 1, max: 12, aliases: []string{"jan", "feb", "mar", "apr", "may", "jun",
		"jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of week", min: 0, max: 6, aliases: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// Schedule is a parsed timetable entry. Each field is a bit set.
type Schedule struct {
	minute, hour, dom, month, dow uint64

	// When both day fields are restricted, either may match; this oddity is
	// older than most of us and users rely on it.
	domAny, dowAny bool
}

// ParseSchedule understands lists, ranges, steps, names and "*".
func ParseSchedule(spec string) (Schedule, error) {
	columns := strings.Fields(strings.ToLower(spec))
	if len(columns) != len(fields) {
		return Schedule{}, fmt.Errorf("schedule %q: want %d fields, got %d", spec, len(fields), len(columns))
	}
	var sets [5]uint64
	for i, column := range columns {
		set, err := fields[i].parse(column)
		if err != nil {
			return Schedule{}, fmt.Errorf("schedule %q: %s: %w", spec, fields[i].name, err)
		}
		sets[i] = set
	}
	return Schedule{
		minute: sets[0], hour: sets[1], dom: sets[2], month: sets[3], dow: sets[4],
		domAny: columns[2] == "*", dowAny: columns[4] == "*",
	}, nil
}

func (f field) parse(column string) (uint64, error) {
	var set uint64
	for _, term := range strings.Split(column, ",") {
		span, stepText, stepped := strings.Cut(term, "/")
		step := 1
		if stepped {
			n, err := strconv.Atoi(stepText)
			if err != nil || n < 1 {
				return 0, fmt.Errorf("bad step %q", stepText)
			}
			step = n
		}
		lo, hi := f.min, f.max
		if span != "*" {
			first, last, ranged := strings.Cut(span, "-")
			var err error
			if lo, err = f.value(first); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if hi, err = f.value(last); err != nil {
					return 0, err
				}
			case !stepped:
				hi = lo
			}
		}
		if lo > hi {
			return 0, fmt.Errorf("range %q runs backwards", span)
		}
		for v := lo; v <= hi; v += step {
			set |= 1 << uint(v)
		}
	}
	return set, nil
}

func (f field) value(text string) (int, error) {
	for i, alias := range f.aliases {
		if text == alias {
			return f.min + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	if n < f.min || n > f.max {
		return 0, fmt.Errorf("%d is outside %d-%d", n, f.min, f.max)
	}
	return n, nil
}

func has(set uint64, v int) bool { return set&(1<<uint(v)) != 0 }

func (s Schedule) dayMatches(t time.Time) bool {
	dom, dow := has(s.dom, t.Day()), has(s.dow, int(t.Weekday()))
	if s.domAny || s.dowAny {
		return dom && dow
	}
	return dom || dow
}

// Next returns the first matching minute strictly after t, or the zero time if
// there is none within five years (30 February, for instance).
func (s Schedule) Next(t time.Time) time.Time {
	limit := t.AddDate(5, 0, 0)
	t = t.Truncate(time.Minute).Add(time.Minute)
	for t.Before(limit) {
		switch {
		case !has(s.month, int(t.Month())):
			t = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, t.Location())
		case !s.dayMatches(t):
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, t.Location())
		case !has(s.hour, t.Hour()):
			// Adding a duration, unlike time.Date, is immune to clocks going forward.
			t = t.Add(time.Duration(60-t.Minute()) * time.Minute)
		case !has(s.minute, t.Minute()):
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

// Job is what the operator configures.
type Job struct {
	Name     string
	Command  []string
	Schedule Schedule
	Timeout  time.Duration
	Retries  int
	// Jitter spreads jobs that share a schedule over a window.
	Jitter time.Duration
}

// Run records one execution.
type Run struct {
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`
	Attempts int           `json:"attempts"`
	Error    string        `json:"error,omitempty"`
	Output   string        `json:"output,omitempty"`
}

const (
	historyLength = 20
	outputLimit   = 16 << 10
)

type entry struct {
	job Job

	mu      sync.Mutex
	running bool
	skipped int
	next    time.Time
	history []Run
}

// Scheduler owns a set of jobs. The zero value is not usable; call New.
type Scheduler struct {
	log *slog.Logger
	now func() time.Time

	mu      sync.RWMutex
	entries map[string]*entry

	wake chan struct{}
	wg   sync.WaitGroup
}

// New returns an empty scheduler that logs to log.
func New(log *slog.Logger) *Scheduler {
	return &Scheduler{
		log:     log,
		now:     time.Now,
		entries: make(map[string]*entry),
		wake:    make(chan struct{}, 1),
	}
}

// ErrDuplicate is returned by Add when the name is taken.
var ErrDuplicate = errors.New("a job of that name exists already")

// Add registers a job; it may be called while the scheduler is running.
func (s *Scheduler) Add(job Job) error {
	if job.Name == "" || len(job.Command) == 0 {
		return errors.New("a job needs a name and a command")
	}
	if job.Timeout <= 0 {
		job.Timeout = time.Hour
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.entries[job.Name]; taken {
		return fmt.Errorf("%s: %w", job.Name, ErrDuplicate)
	}
	s.entries[job.Name] = &entry{job: job, next: job.Schedule.Next(s.now())}

	// Nudge the loop without blocking: one pending nudge is as good as ten.
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// Serve runs until ctx is cancelled, then waits for running jobs to stop.
func (s *Scheduler) Serve(ctx context.Context) error {
	defer s.wg.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, wait := s.collect(s.now())
		for _, e := range due {
			s.launch(ctx, e)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case <-s.wake:
			if !timer.Stop() {
				select {
				case <-timer.C:
				default:
				}
			}
		}
	}
}

// collect returns the entries due at now and how long to sleep afterwards. The
// sleep is capped so that a suspended laptop catches up soon after waking.
func (s *Scheduler) collect(now time.Time) (due []*entry, wait time.Duration) {
	wait = time.Minute
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.entries {
		e.mu.Lock()
		if !e.next.IsZero() && !e.next.After(now) {
			due = append(due, e)
			e.next = e.job.Schedule.Next(now)
		}
		if !e.next.IsZero() {
			wait = min(wait, e.next.Sub(now))
		}
		e.mu.Unlock()
	}
	return due, wait
}

func (s *Scheduler) launch(ctx context.Context, e *entry) {
	e.mu.Lock()
	if e.running {
		e.skipped++
		e.mu.Unlock()
		s.log.Warn("previous run still in progress, skipping", "job", e.job.Name)
		return
	}
	e.running = true
	e.mu.Unlock()

	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		run := s.execute(ctx, e.job)
		e.mu.Lock()
		e.running = false
		e.history = append(e.history, run)
		if extra := len(e.history) - historyLength; extra > 0 {
			e.history = append([]Run(nil), e.history[extra:]...)
		}
		e.mu.Unlock()
	}()
}

func (s *Scheduler) execute(ctx context.Context, job Job) Run {
	log := s.log.With("job", job.Name)
	if job.Jitter > 0 && !sleep(ctx, time.Duration(rand.Int63n(int64(job.Jitter)))) {
		return Run{Started: s.now(), Error: ctx.Err().Error()}
	}
	run := Run{Started: s.now()}
	backoff := 5 * time.Second
	for {
		run.Attempts++
		output, err := attempt(ctx, job)
		run.Output = output
		if err == nil {
			run.Error = ""
			break
		}
		run.Error = err.Error()
		if run.Attempts > job.Retries || ctx.Err() != nil {
			log.Error("job failed", "attempts", run.Attempts, "err", err)
			break
		}
		log.Warn("attempt failed, will retry", "attempt", run.Attempts, "in", backoff, "err", err)
		if !sleep(ctx, backoff) {
			break
		}
		backoff = min(2*backoff, 5*time.Minute)
	}
	run.Duration = s.now().Sub(run.Started)
	return run
}

func attempt(ctx context.Context, job Job) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, job.Timeout)
	defer cancel()
	var out tailBuffer
	cmd := exec.CommandContext(ctx, job.Command[0], job.Command[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("killed after %s", job.Timeout)
	}
	return out.String(), err
}

// tailBuffer keeps the end of what is written to it; the interesting line of a
// failing job is rarely the first.
type tailBuffer struct {
	buf       bytes.Buffer
	truncated bool
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.buf.Write(p)
	if excess := t.buf.Len() - outputLimit; excess > 0 {
		t.buf.Next(excess)
		t.truncated = true
	}
	return len(p), nil
}

func (t *tailBuffer) String() string {
	if t.truncated {
		return "[...]" + strings.ToValidUTF8(t.buf.String(), "?")
	}
	return strings.ToValidUTF8(t.buf.String(), "?")
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

type status struct {
	Name    string    `json:"name"`
	Running bool      `json:"running"`
	Skipped int       `json:"skipped"`
	Next    time.Time `json:"next"`
	History []Run     `json:"history"`
}

func (s *Scheduler) snapshot() []status {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]status, 0, len(s.entries))
	for name, e := range s.entries {
		e.mu.Lock()
		list = append(list, status{name, e.running, e.skipped, e.next, append([]Run{}, e.history...)})
		e.mu.Unlock()
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// Handler exposes GET /jobs, GET /jobs/{name} and POST /jobs/{name}/run.
// Runs started by hand are bound to base, not to the request that asked.
func (s *Scheduler) Handler(base context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /jobs", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, s.snapshot())
	})
	mux.HandleFunc("GET /jobs/{name}", func(w http.ResponseWriter, r *http.Request) {
		for _, st := range s.snapshot() {
			if st.Name == r.PathValue("name") {
				reply(w, http.StatusOK, st)
				return
			}
		}
		http.NotFound(w, r)
	})
	mux.HandleFunc("POST /jobs/{name}/run", func(w http.ResponseWriter, r *http.Request) {
		s.mu.RLock()
		e, ok := s.entries[r.PathValue("name")]
		s.mu.RUnlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		s.launch(base, e)
		w.WriteHeader(http.StatusAccepted)
	})
	return mux
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	// The client hanging up half-way is not worth a log line.
	_ = enc.Encode(body)
}
