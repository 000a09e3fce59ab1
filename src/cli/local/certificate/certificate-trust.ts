/** Says how each platform is told to trust the authority in a file (PEM). */
export function trustAdvice(file: string): string {
  return [
    'Software trusts it once it is told to. A whole machine:',
    `  Debian, Ubuntu   sudo cp ${file} /usr/local/share/ca-certificates/latchkey.crt && sudo update-ca-certificates`,
    `  Fedora, RHEL     sudo cp ${file} /etc/pki/ca-trust/source/anchors/latchkey.pem && sudo update-ca-trust`,
    `  Arch             sudo trust anchor --store ${file}`,
    `  macOS            sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ${file}`,
    `  Windows (admin)  certutil -addstore -f Root ${file}`,
    'Or one program, where it does not ask the machine:',
    `  Node             NODE_EXTRA_CA_CERTS=${file}`,
    `  Python           SSL_CERT_FILE=${file}   (requests: REQUESTS_CA_BUNDLE; either replaces the public ones)`,
    `  Java             keytool -importcert -cacerts -storepass changeit -noprompt -alias latchkey -file ${file}`,
    `  Go, on Linux     SSL_CERT_FILE=${file}   (replaces the public ones)`,
    `  curl             --cacert ${file}`,
  ].join('\n');
}
