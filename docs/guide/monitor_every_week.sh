#!/bin/sh
# Run every Monday, when the labels of the week have arrived.
# Crontab: 15 6 * * 1 monitor_every_week.sh
week=${1:-$(date +%G-week-%V)}
calibrant monitor update state.json "labeled/$week.parquet" \
  --when "$week" --metrics calibrant.prom -q
case $? in
  0) ;; # no alarm
  3) # The text is the e-mail, and monitor.html is a page for the web.
     calibrant monitor show state.json -o monitor.html --title "credit model" -q |
     mail -s "the model is no longer calibrated" team@example.org ;;
  4) echo "monitor: $week was added, but its results could not be written" >&2; exit 1 ;;
  *) echo "monitor: $week was not added; the state is unchanged" >&2; exit 1 ;;
esac
