module example.com/license-check

go 1.21

require github.com/golang-jwt/jwt/v5 v5.3.1
