#!/bin/sh
# A theme that sends multipart/form-data, as PHP's curl does with an array, and looks for one word.
: "${LICENSE_API:=https://api.gumroad.com}"
set -- "$1" "$([ "$2" = count ] && echo true || echo false)"
if answer=$(curl -s -X POST "$LICENSE_API/v2/licenses/verify" \
  -F "product_id=$PRODUCT_ID" -F "license_key=$1" -F "increment_uses_count=$2"); then
  case $answer in
    *'"success":true'*) echo "$1" >"$LICENSE_FILE"; echo VALID ;;
    *) rm -f "$LICENSE_FILE"; echo INVALID ;;
  esac
elif [ -e "$LICENSE_FILE" ]; then
  echo KEEP
else
  echo 'TRY LATER'
fi
