package cli

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// Keys of a configuration that say what is logged, and how.
const (
	LevelKey  = "log_level"
	FormatKey = "log_format"
)

// CheckLog says what is wrong with the two keys.
func CheckLog(level, format string, bad func(key, form string, args ...any)) {
	if _, ok := logLevels[level]; !ok {
		bad(LevelKey, "%q: want debug, info, warn or error", level)
	}
	if format != "text" && format != "json" {
		bad(FormatKey, "%q: want text or json", format)
	}
}

// Log is a logger whose level may change while it is used.
type Log struct {
	*slog.Logger
	level slog.LevelVar
}

// NewLog logs to out as the two keys say, which CheckLog found good.
func NewLog(out io.Writer, level, format string) *Log {
	l := new(Log)
	l.level.Set(logLevels[level])
	opts := &slog.HandlerOptions{Level: &l.level}
	if l.Logger = slog.New(slog.NewTextHandler(out, opts)); format == "json" {
		l.Logger = slog.New(slog.NewJSONHandler(out, opts))
	}
	return l
}

// FollowHangup has read read the configuration again at every SIGHUP, until ctx
// ends. Of what it says the level takes effect at once, everything else at the
// next start, and the log names it. A file that is not acceptable changes nothing.
func (l *Log) FollowHangup(ctx context.Context, now any, read func() (cfg any, level string, err error)) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hup)
		for {
			select {
			case <-hup:
				l.reload(now, read)
			case <-ctx.Done():
				return
			}
		}
	}()
}

func (l *Log) reload(now any, read func() (cfg any, level string, err error)) {
	cfg, level, err := read()
	if err != nil {
		l.Error("configuration not read again", "reason", err)
		return
	}
	l.level.Set(logLevels[level])
	l.Log(context.Background(), max(slog.LevelInfo, l.level.Level()), "configuration read again", LevelKey, level) // also where Info is not logged any more
	if keys := changed(now, cfg, LevelKey); len(keys) > 0 {
		l.Warn("what has changed besides waits for the next start", "keys", strings.Join(keys, " "))
	}
}
