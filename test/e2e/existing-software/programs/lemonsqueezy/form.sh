#!/bin/sh
# A theme that sends a form, as PHP's http_build_query makes it, and looks for one word.
: "${LICENSE_API:=https://api.lemonsqueezy.com}"
stored=$(cat "$LICENSE_FILE" 2>/dev/null)
ask() {
  name=$1
  shift
  curl -s -X POST -H 'Accept: application/json' "$LICENSE_API/v1/licenses/$name" "$@"
}
if [ "$2" = count ]; then
  answer=$(ask activate -d "license_key=$1" -d instance_name=example.com) || answer=none
else
  case $stored in
    *-*) answer=$(ask validate -d "license_key=$1" -d "instance_id=$stored") || answer=none ;;
    *) answer=$(ask validate -d "license_key=$1") || answer=none ;;
  esac
fi
case $answer in
  none)
    if [ -e "$LICENSE_FILE" ]; then echo KEEP; else echo 'TRY LATER'; fi
    ;;
  *'"activated":true'*)
    echo "$answer" | sed 's/.*"instance":{"id":"\([^"]*\)".*/\1/' | tr -d '\n' >"$LICENSE_FILE"
    echo VALID
    ;;
  *'"valid":true'*)
    [ -e "$LICENSE_FILE" ] || printf key >"$LICENSE_FILE"
    echo VALID
    ;;
  *)
    rm -f "$LICENSE_FILE"
    echo INVALID
    ;;
esac
