package main

import (
	"fmt"
	"strconv"
	"strings"
)

// A field is the set of values that it allows.
type field struct {
	allowed [60]bool
	low     int
	high    int
	// isOpen tells that it starts with *, which matters to the two fields of days.
	isOpen bool
}

type schedule struct{ minute, hour, day, month, weekday field }

// A form is what a field may look like.
type form struct {
	name      string
	low, high int
	names     string
}

var forms = [5]form{
	{"minute", 0, 59, ""},
	{"hour", 0, 23, ""},
	{"day of month", 1, 31, ""},
	{"month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"},
	{"day of week", 0, 7, "sun mon tue wed thu fri sat"},
}

var nicknames = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

func parse(expression string) (schedule, error) {
	expression = strings.ToLower(strings.TrimSpace(expression))
	if strings.HasPrefix(expression, "@") {
		fields, isKnown := nicknames[expression]
		if !isKnown {
			return schedule{}, fmt.Errorf("%q is not known; use @hourly, @daily, @weekly, @monthly or @yearly", expression)
		}
		expression = fields
	}
	texts := strings.Fields(expression)
	if len(texts) != len(forms) {
		return schedule{}, fmt.Errorf("the expression has %d fields and needs five: minute, hour, day of month, "+
			"month, day of week%s", len(texts), advice(len(texts)))
	}
	var fields [5]field
	for index, text := range texts {
		parsed, err := forms[index].parse(text)
		if err != nil {
			return schedule{}, fmt.Errorf("the field %s: %w", forms[index].name, err)
		}
		fields[index] = parsed
	}
	fields[4].joinSundays()
	return schedule{fields[0], fields[1], fields[2], fields[3], fields[4]}, nil
}

func advice(count int) string {
	if count == 6 || count == 7 {
		return ". Leave out seconds and years"
	}
	return ""
}

func (form form) parse(text string) (field, error) {
	parsed := field{low: form.low, high: form.high, isOpen: strings.HasPrefix(text, "*") || text == "?"}
	for part := range strings.SplitSeq(text, ",") {
		first, last, step, err := form.parsePart(part)
		if err != nil {
			return field{}, err
		}
		for value := first; value <= last; value += step {
			parsed.allowed[value] = true
		}
	}
	return parsed, nil
}

// parsePart reads one of *, 5, 1-5, each perhaps followed by /STEP.
func (form form) parsePart(part string) (first, last, step int, err error) {
	span, stepText, hasStep := strings.Cut(part, "/")
	step = 1
	if hasStep {
		step, err = strconv.Atoi(stepText)
		if err != nil || step < 1 || step > form.high {
			return 0, 0, 0, fmt.Errorf("%q is not a step from 1 to %d", stepText, form.high)
		}
	}
	if span == "*" || span == "?" {
		return form.low, form.high, step, nil
	}
	from, to, isRange := strings.Cut(span, "-")
	if first, err = form.parseValue(from); err != nil {
		return 0, 0, 0, err
	}
	last = first
	if hasStep {
		last = form.high
	}
	if isRange {
		if last, err = form.parseValue(to); err != nil {
			return 0, 0, 0, err
		}
	}
	if form.high == 7 && last == 0 && first > 0 {
		last = 7 // a week may end with its Sunday
	}
	if last < first {
		return 0, 0, 0, fmt.Errorf("the range %s runs backwards", span)
	}
	return first, last, step, nil
}

func (form form) parseValue(text string) (int, error) {
	for index, name := range strings.Fields(form.names) {
		if text == name {
			return form.low + index, nil
		}
	}
	value, err := strconv.Atoi(text)
	switch {
	case err == nil && value >= form.low && value <= form.high && text[0] != '+':
		return value, nil
	case strings.ContainsAny(text, "lw#"):
		return 0, fmt.Errorf("%q: L, W and # are extensions of some schedulers, and not of cron", text)
	case form.names != "":
		return 0, fmt.Errorf("%q is not a number from %d to %d or a name such as %s", text, form.low, form.high, form.names[:3])
	default:
		return 0, fmt.Errorf("%q is not a number from %d to %d", text, form.low, form.high)
	}
}

// joinSundays makes 7 another name of 0.
func (weekday *field) joinSundays() {
	weekday.allowed[0] = weekday.allowed[0] || weekday.allowed[7]
	weekday.allowed[7], weekday.high = false, 6
}

// values lists what the field allows.
func (field field) values() []int {
	var values []int
	for value := field.low; value <= field.high; value++ {
		if field.allowed[value] {
			values = append(values, value)
		}
	}
	return values
}

func (field field) allowsAll() bool { return len(field.values()) == field.high-field.low+1 }

// step returns n if the field allows every nth value from 0 on, evenly. Otherwise it returns 0.
func (field field) step() int {
	values, size := field.values(), field.high+1
	if len(values) < 2 || values[0] != 0 || size%len(values) != 0 {
		return 0
	}
	step := size / len(values)
	for index, value := range values {
		if value != index*step {
			return 0
		}
	}
	return step
}
