rockspec_format = "3.0"
package = "license-check"
version = "1.0-1"
source = { url = "." }
dependencies = { "lua >= 5.3", "luasocket", "lua-cjson", "luaossl" }
build = { type = "builtin", install = { bin = { "license_check.lua" }, lua = { "lease.lua" } } }
