package main

import "time"

// yearsMax is how far ahead times are looked for. The 29th of February can be eight years away.
const yearsMax = 9

// next returns the next times after a moment, in its zone. A time that the clock skips when summer
// begins is left out, and one that it shows twice is listed once.
func (schedule schedule) next(after time.Time, count int) []time.Time {
	var times []time.Time
	zone, end := after.Location(), after.AddDate(yearsMax, 0, 0)
	year, month, date := after.Date()
	// Noon exists on every day, in every zone.
	for day := time.Date(year, month, date, 12, 0, 0, 0, zone); day.Before(end); day = day.AddDate(0, 0, 1) {
		if !schedule.allowsDay(day) {
			continue
		}
		for _, hour := range schedule.hour.values() {
			for _, minute := range schedule.minute.values() {
				due, exists := wallTime(day, hour, minute)
				if exists && due.After(after) {
					times = append(times, due)
				}
				if len(times) == count {
					return times
				}
			}
		}
	}
	return times
}

func (schedule schedule) allowsDay(day time.Time) bool {
	if !schedule.month.allowed[day.Month()] {
		return false
	}
	byDay, byWeekday := schedule.day.allowed[day.Day()], schedule.weekday.allowed[day.Weekday()]
	if schedule.day.isOpen || schedule.weekday.isOpen {
		return byDay && byWeekday
	}
	return byDay || byWeekday
}

// wallTime returns when the clock shows a time of a day, the first time if it does so twice.
func wallTime(day time.Time, hour, minute int) (time.Time, bool) {
	year, month, date := day.Date()
	due := time.Date(year, month, date, hour, minute, 0, 0, day.Location())
	exists := due.Hour() == hour && due.Minute() == minute
	if earlier := due.Add(-time.Hour); earlier.Hour() == hour && earlier.Minute() == minute {
		due = earlier
	}
	return due, exists
}
