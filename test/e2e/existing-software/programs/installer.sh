#!/bin/sh
# An installer that uses curl. Second version of the API.
action=$1
key=$2
url="$LICENSE_API/api/v2/license"
secret="product-secret-key: $PRODUCT_SECRET"

if [ "$action" = check ]; then
  answer=$(curl -fsS -m 30 -G -H "$secret" --data-urlencode "license_key=$key" "$url/verify" 2>/dev/null)
  case $? in
    0) ;;
    22) answer= ;; # the server said no
    *)
      if [ -e "$LICENSE_FILE" ]; then echo KEEP; else echo 'TRY LATER'; fi
      exit
      ;;
  esac
  if echo "$answer" | grep -q '"enabled": *true'; then
    echo "$key" >"$LICENSE_FILE"
    echo VALID
  else
    rm -f "$LICENSE_FILE"
    echo INVALID
  fi
  exit
fi

answer=$(curl -fsS -m 30 -X PUT -H "$secret" --data-urlencode "license_key=$key" "$url/$action")
case $action in
  usage | decrease) echo "USES $(echo "$answer" | sed 's/.*"uses": *\([0-9]*\).*/\1/')" ;;
  *) if echo "$answer" | grep -q '"enabled": *true'; then echo ENABLED; else echo DISABLED; fi ;;
esac
