package main

import (
	"strings"
	"testing"
	"time"

	"sallyport"
)

func TestDescriptions(t *testing.T) {
	for _, row := range [][2]string{
		{"* * * * *", "Every minute, every day"},
		{"*/15 * * * *", "Every 15 minutes, every day"},
		{"*/7 * * * *", "At the minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour, every day"},
		{"0 * * * *", "Every hour, on the hour, every day"},
		{"5 * * * *", "At minute 5 of every hour, every day"},
		{"0 9 * * 1-5", "At 09:00, Monday to Friday"},
		{"30 8,17 * * MON,WED,FRI", "At 08:30 and 17:30, on Monday, Wednesday and Friday"},
		{"*/10 9-17 * * *", "Every 10 minutes from 09:00 to 17:59, every day"},
		{"* 9-12,15 * * *", "Every minute of the hours 9 to 12 and 15, every day"},
		{"0 */2 * * *", "At minute 0 of every 2nd hour, every day"},
		{"0 0 1 * *", "At 00:00, on day 1 of the month"},
		{"0 0 1,15 * 1", "At 00:00, on the days 1 and 15 of the month and also on Monday"},
		{"0 0 */2 * 1", "At 00:00, on the days 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29 and 31 of the month if it is also Monday"},
		{"0 0 29 feb ?", "At 00:00, on day 29 of the month, in February"},
		{"0 0 * jun-aug 7", "At 00:00, on Sunday, in June to August"},
		{"0 0 * * fri-sun", "At 00:00, on Sunday, Friday and Saturday"},
		{"@weekly", "At 00:00, on Sunday"},
		{" @DAILY ", "At 00:00, every day"},
	} {
		schedule, err := parse(row[0])
		if err != nil || schedule.describe() != row[1] {
			t.Errorf("%s is %q, %v; expected %q", row[0], schedule.describe(), err, row[1])
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, row := range [][2]string{
		{"", "0 fields"},
		{"* * * *", "4 fields"},
		{"0 0 12 * * ?", "Leave out seconds"},
		{"60 * * * *", `the field minute: "60" is not a number from 0 to 59`},
		{"* 24 * * *", "the field hour"},
		{"* * 0 * *", "from 1 to 31"},
		{"* * * 13 *", "or a name such as jan"},
		{"* * * * 8", "or a name such as sun"},
		{"5-1 * * * *", "runs backwards"},
		{"*/0 * * * *", "not a step"},
		{"*/x * * * *", "not a step"},
		{"1,,2 * * * *", `"" is not a number`},
		{"+5 * * * *", "is not a number"},
		{"* * L * *", "extensions"},
		{"* * * * 1#2", "extensions"},
		{"@often", "use @hourly"},
		{"@", "use @hourly"},
	} {
		if schedule, err := parse(row[0]); err == nil || !strings.Contains(err.Error(), row[1]) {
			t.Errorf("%s gives %v, %v; expected %q", row[0], schedule.describe(), err, row[1])
		}
	}
}

func TestNextTimes(t *testing.T) {
	for _, row := range []struct{ expression, zone, after, expected string }{
		{"0 9 * * 1-5", "UTC", "2026-01-30T09:00:00Z", "2026-02-02T09:00:00Z 2026-02-03T09:00:00Z"},
		{"30 23 31 * *", "UTC", "2026-01-31T23:30:00Z", "2026-03-31T23:30:00Z 2026-05-31T23:30:00Z"},
		{"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 0 30 2 *", "UTC", "2026-01-01T00:00:00Z", ""},
		{"0 0 13 * 5", "UTC", "2026-03-01T00:00:00Z", "2026-03-06T00:00:00Z 2026-03-13T00:00:00Z"},
		// 02:30 does not exist on the 29th of March, and is shown twice on the 25th of October.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T02:30:00+02:00 2026-03-31T02:30:00+02:00"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"0 0 * * *", "Asia/Kathmandu", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00+05:45 2026-01-03T00:00:00+05:45"},
	} {
		schedule, err := parse(row.expression)
		zone, zoneErr := time.LoadLocation(row.zone)
		after, timeErr := time.Parse(time.RFC3339, row.after)
		if err != nil || zoneErr != nil || timeErr != nil {
			t.Fatal(err, zoneErr, timeErr)
		}
		var found []string
		for _, due := range schedule.next(after.In(zone), 2) {
			found = append(found, due.Format(time.RFC3339))
		}
		if joined := strings.Join(found, " "); joined != row.expected {
			t.Errorf("%s gives %s; expected %s", row.expression, joined, row.expected)
		}
	}
}

func TestTool(t *testing.T) {
	for _, row := range [][2]string{
		{`{"expression":"0 9 * * *","after":"2026-01-01T00:00:00Z","count":1}`,
			`{"description":"At 09:00, every day","time_zone":"UTC","next":["2026-01-01T09:00:00Z"]}`},
		{`{"expression":"x"}`, "needs five"},
		{`{"expression":"@daily","time_zone":"Mars/Base"}`, "there is no time zone"},
		{`{"expression":"@daily","time_zone":"Local"}`, "there is no time zone"},
		{`{"expression":"@daily","after":"tomorrow"}`, "is not a time"},
	} {
		data, err := sallyport.Run("explain_cron", row[0])
		if data != row[1] && (err == nil || !strings.Contains(err.Error(), row[1])) {
			t.Errorf("%s gives %s, %v; expected %s", row[0], data, err, row[1])
		}
	}
}
