#!/bin/sh
# An installer that searches the answer for one word.
: "${LICENSE_API:=https://api.polar.sh}"
uses=$([ "$2" = count ] && echo ', "increment_usage": 2')
if answer=$(curl -s "$LICENSE_API/v1/customer-portal/license-keys/validate" -H 'Content-Type: application/json' \
  -d "{\"key\": \"$1\", \"organization_id\": \"$ORGANIZATION_ID\"$uses}"); then
  case $answer in
    *'"status":"granted"'*) echo "$1" >"$LICENSE_FILE"; echo VALID ;;
    *) rm -f "$LICENSE_FILE"; echo INVALID ;;
  esac
elif [ -e "$LICENSE_FILE" ]; then
  echo KEEP
else
  echo 'TRY LATER'
fi
