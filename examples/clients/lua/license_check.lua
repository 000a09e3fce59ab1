-- Checks a license key when it starts, and counts a use: lua license_check.lua LICENSE-KEY
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local lease = require("lease")
local http = require("socket.http")
local socket = require("socket")
local url = require("socket.url")
local ltn12 = require("ltn12")
local json = require("cjson.safe")

http.TIMEOUT = 5
local deadline, grace = 10, 14 * 24 * 3600

local function environment(name, otherwise)
  local value = os.getenv(name)
  return value and value ~= "" and value or otherwise
end

local base = environment("LATCHKEY_URL", "http://127.0.0.1:8787")
local file = environment("LATCHKEY_LAST_KNOWN", "last-known")

-- A socket with one time limit for the whole request: LuaSocket's limit restarts with each byte.
local function limited()
  local tcp, finish = assert(socket.tcp()), socket.gettime() + http.TIMEOUT
  return setmetatable({}, {
    __index = function(_, name)
      return function(_, ...)
        tcp:settimeout(math.max(0, finish - socket.gettime()), "t")
        return tcp[name](tcp, ...)
      end
    end,
  })
end

-- Sends one request. Gives status and answer, or nil if there is no readable answer.
local function call(method, path, form, headers)
  if not base:find("^http://") then return nil end -- it speaks no TLS: the secret would go out in the clear
  local sent = {
    ["product-secret-key"] = os.getenv("LATCHKEY_SECRET"),
    ["accept"] = "application/problem+json, application/json",
  }
  for name, value in pairs(headers or {}) do sent[name] = value end
  if form then
    sent["content-type"] = "application/x-www-form-urlencoded"
    sent["content-length"] = tostring(#form)
  end
  local body = {}
  local ok, status = http.request({
    method = method,
    url = base .. path,
    headers = sent,
    source = form and ltn12.source.string(form),
    sink = ltn12.sink.table(body),
    create = limited,
    redirect = false, -- it would take the secret along
  })
  local answer = ok and json.decode(table.concat(body))
  if type(answer) ~= "table" then return nil end
  return status, answer
end

-- Gives the verdict, and the end of a license that ends.
local function verify(key)
  local status, answer = call("GET", "/api/v2/license/verify?license_key=" .. url.escape(key))
  local license = answer and type(answer.data) == "table" and answer.data or {}
  local grace_until, expires_at = license.grace_until, license.expires_at
  local ends = type(grace_until) == "string" and grace_until or type(expires_at) == "string" and expires_at or nil
  if status == 200 and license.enabled == true then return "valid", ends end
  if status == 200 and license.enabled == false then return "refused: disabled" end
  if status == 404 and answer.code == "license_not_found" then return "refused: not found" end
  return "undetermined"
end

local function new_key()
  local source = assert(io.open("/dev/urandom", "rb"))
  local bytes = source:read(16)
  source:close()
  return (bytes:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
end

-- What the vendor has signed for this device: another program on the port cannot say it. And what that unlocks.
local function leased(key)
  local nonce = new_key()
  local query = ("license_key=%s&product_key=%s&nonce=%s"):format(url.escape(key), url.escape(lease.product), nonce)
  local status, answer = call("GET", "/agent/v1/lease?" .. query)
  if status == 404 and answer.code == "license_not_found" then return "refused: not found", {} end
  if status == 409 and answer.code == "no_seat_left" then return "refused: no seat left", {} end
  if status == 409 and answer.code == "license_expired" then return "refused: expired", {} end
  -- The version of the keys that was seen last. Keys that the vendor has retired have a lower one.
  local kept = io.open(file)
  local seen = math.tointeger(kept and kept:read("n")) or 0
  if kept then kept:close() end
  local proven, verdict, version, entitlements = pcall(lease.check, answer and answer.data, key, nonce, seen)
  if not proven then
    io.stderr:write("not proven: ", tostring(verdict), "\n")
    return "undetermined", {}
  end
  kept = io.open(file, "w")
  if kept then
    kept:write(version)
    kept:close()
  end
  return verdict, entitlements
end

local passing = { [408] = true, [409] = true, [429] = true }

-- All retries send the same idempotency key, so that the use counts once.
local function count_use(key)
  local idempotency_key = new_key()
  local finish, wait = socket.gettime() + deadline, 0.1
  while socket.gettime() < finish do
    local form = "license_key=" .. url.escape(key) .. "&product_key=" .. url.escape(lease.product)
    local status, answer = call("PUT", "/api/v2/license/usage", form, { ["idempotency-key"] = idempotency_key })
    local license = answer and type(answer.data) == "table" and answer.data or {}
    if status == 200 and math.tointeger(license.uses) then return ("%d"):format(license.uses) end
    if status and status ~= 200 and status < 500 and not passing[status] then
      return ("refused (%s)"):format(answer.code or status)
    end
    socket.sleep(wait)
    wait = math.min(2 * wait, 2)
  end
  return "later, under " .. idempotency_key
end

local function utc(time) return os.date("!%Y-%m-%dT%H:%M:%S+00:00", time) end

-- The final verdict: a missing answer is not a "no", and only "disabled" revokes at once.
local function remembered(verdict, ends)
  if verdict == "valid" or verdict == "refused: disabled" then
    local kept, fault = io.open(file, "w")
    if kept then
      -- Dates in UTC, whose order is that of their texts. No license is valid after its end.
      local latest = utc(os.time() + grace)
      kept:write(ends and ends < latest and ends or latest, " ", verdict)
      kept:close()
    else
      io.stderr:write(fault, "\n") -- it stands in the way of no verdict
    end
  end
  local kept = verdict == "undetermined" and io.open(file)
  if not kept then return verdict end
  local latest, last = (kept:read("a") or ""):match("^(%S+) (.*)$")
  kept:close()
  if last == "refused: disabled" then return "refused: disabled" end
  if last == "valid" and utc(os.time()) <= latest then return "valid (last known)" end
  return verdict
end

local key = arg[1]
if not key then
  io.stderr:write("usage: license_check.lua LICENSE-KEY\n")
  os.exit(2)
end
local verdict, entitlements
if #lease.roots > 0 then
  verdict, entitlements = leased(key)
else
  verdict, entitlements = remembered(verify(key)), {}
end
print(verdict)
if #entitlements > 0 then print("entitlements: " .. table.concat(entitlements, " ")) end
if verdict == "valid" then print("uses: " .. count_use(key)) end
os.exit(verdict:find("^valid") and 0 or verdict:find("^refused") and 1 or 2)
