// A plugin that explains cron expressions: "0 9 * * 1-5" is "At 09:00, Monday to Friday".
package main

import (
	"time"
	_ "time/tzdata" // a component sees no files of the system

	"sallyport"
)

// countDefault is how many times are listed unless the caller says otherwise.
const countDefault = 5

type explainArguments struct {
	Expression string  `json:"expression" desc:"Five fields (minute, hour, day of month, month, day of week), or @daily and the like."`
	TimeZone   *string `json:"time_zone" desc:"An IANA name such as Europe/Berlin; UTC unless given."`
	Count      *int    `json:"count" desc:"How many of the next times to list; 5 unless given." min:"1" max:"50"`
	After      *string `json:"after" desc:"List times after this one, as 2026-01-31T12:00:00Z; now unless given."`
}

type explainResult struct {
	Description string   `json:"description"`
	TimeZone    string   `json:"time_zone"`
	Next        []string `json:"next"`
}

func explainCron(_ *sallyport.Call, arguments explainArguments) (explainResult, error) {
	schedule, err := parse(arguments.Expression)
	if err != nil {
		return explainResult{}, sallyport.InvalidArguments("%s", err)
	}
	zone, err := findZone(arguments.TimeZone)
	if err != nil {
		return explainResult{}, err
	}
	after, err := findStart(arguments.After)
	if err != nil {
		return explainResult{}, err
	}
	count := countDefault
	if arguments.Count != nil {
		count = *arguments.Count
	}
	next := []string{}
	for _, due := range schedule.next(after.In(zone), count) {
		next = append(next, due.Format(time.RFC3339))
	}
	return explainResult{schedule.describe(), zone.String(), next}, nil
}

func findZone(name *string) (*time.Location, error) {
	if name == nil || *name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(*name)
	if err != nil || *name == "Local" {
		return nil, sallyport.InvalidArguments("there is no time zone %q; use a name such as Europe/Berlin", *name)
	}
	return zone, nil
}

func findStart(text *string) (time.Time, error) {
	if text == nil {
		return time.Now(), nil
	}
	start, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return start, sallyport.InvalidArguments("%q is not a time; use 2026-01-31T12:00:00Z", *text)
	}
	return start, nil
}

func init() {
	sallyport.Tool("explain_cron", "Explains a cron expression in words and lists the next times that it comes due.",
		explainCron, sallyport.ReadOnly())
}

// Nothing calls main: the host calls the tool.
func main() {}
