package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// timesMax is how many times of day are listed one by one.
const timesMax = 6

func (schedule schedule) describe() string {
	return schedule.describeTime() + schedule.describeDays() + schedule.describeMonths()
}

func (schedule schedule) describeTime() string {
	minutes, hours := schedule.minute.values(), schedule.hour.values()
	if len(minutes)*len(hours) <= timesMax {
		return "At " + enumerate(timesOfDay(minutes, hours))
	}
	of := " of every hour"
	step := schedule.hour.step()
	switch {
	case schedule.hour.allowsAll() && len(minutes) == 1 && minutes[0] == 0:
		return "Every hour, on the hour"
	case schedule.hour.allowsAll():
	case step > 0:
		of = fmt.Sprintf(" of every %s hour", ordinal(step))
	default:
		of = " of the hours " + enumerate(runs(hours, strconv.Itoa))
	}
	if len(minutes) == 1 {
		return fmt.Sprintf("At minute %d%s", minutes[0], of)
	}
	if step = schedule.minute.step(); step == 0 {
		return "At the minutes " + enumerate(runs(minutes, strconv.Itoa)) + of
	}
	every := "Every minute"
	if step > 1 {
		every = fmt.Sprintf("Every %d minutes", step)
	}
	if schedule.hour.allowsAll() {
		return every
	}
	first, last := hours[0], hours[len(hours)-1]
	if last-first+1 == len(hours) {
		return fmt.Sprintf("%s from %02d:00 to %02d:59", every, first, last)
	}
	return every + of
}

// describeDays returns the days of the month and of the week. If both are restricted, cron takes a
// day that either allows.
func (schedule schedule) describeDays() string {
	days := "on day " + enumerate(runs(schedule.day.values(), strconv.Itoa)) + " of the month"
	if len(schedule.day.values()) > 1 {
		days = strings.Replace(days, "on day ", "on the days ", 1)
	}
	weekdays := enumerate(runs(schedule.weekday.values(), func(day int) string { return time.Weekday(day).String() }))
	if !strings.Contains(weekdays, " to ") {
		weekdays = "on " + weekdays
	}
	anyDay, anyWeekday := schedule.day.allowsAll(), schedule.weekday.allowsAll()
	switch {
	case anyDay && anyWeekday:
		return ", every day"
	case anyWeekday:
		return ", " + days
	case anyDay:
		return ", " + weekdays
	case schedule.day.isOpen || schedule.weekday.isOpen:
		return ", " + days + " if it is also " + strings.TrimPrefix(weekdays, "on ")
	default:
		return ", " + days + " and also " + weekdays
	}
}

func (schedule schedule) describeMonths() string {
	if schedule.month.allowsAll() {
		return ""
	}
	return ", in " + enumerate(runs(schedule.month.values(), func(month int) string { return time.Month(month).String() }))
}

func timesOfDay(minutes, hours []int) []string {
	var times []string
	for _, hour := range hours {
		for _, minute := range minutes {
			times = append(times, fmt.Sprintf("%02d:%02d", hour, minute))
		}
	}
	return times
}

// runs names values. Three or more in a row become "FIRST to LAST".
func runs(values []int, name func(int) string) []string {
	var named []string
	for start := 0; start < len(values); {
		end := start
		for end+1 < len(values) && values[end+1] == values[end]+1 {
			end++
		}
		if end-start >= 2 {
			named = append(named, name(values[start])+" to "+name(values[end]))
		} else {
			for _, value := range values[start : end+1] {
				named = append(named, name(value))
			}
		}
		start = end + 1
	}
	return named
}

func enumerate(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

func ordinal(number int) string {
	switch number {
	case 2:
		return "2nd"
	case 3:
		return "3rd"
	default:
		return strconv.Itoa(number) + "th"
	}
}
