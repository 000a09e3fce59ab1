import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { formatReason } from '../../config/errors.ts';
import { fail, type Finding, ok, warn } from '../../config/finding.ts';
import { hostOf } from '../../config/value/address.ts';
import { formatProxy, ignoredExceptions, type ProxyChoice } from '../../upstream/proxy.ts';

/** Examines whether the name of a server resolves. A proxy resolves the name itself: then the name of the proxy is examined. */
export async function examineHostName(
  server: 'the upstream' | 'the issuer',
  url: string,
  choice: ProxyChoice | null,
): Promise<readonly Finding[]> {
  // If the URL of the proxy is invalid, the request says so.
  const via = choice === null ? null : formatProxy(choice);
  const notice =
    choice === null || via === null
      ? []
      : [ok(`connections to ${server} go through the proxy ${via} (${choice.source})`)];
  const ignored = choice === null ? null : ignoredExceptions(process.env);
  if (ignored !== null) {
    const what = `${ignored.source} has entries that match no host: ${ignored.entries.join(', ')}`;
    notice.push(warn(what, 'write names, *.name, IP addresses or ranges such as 10.0.0.0/8'));
  }
  const host = hostOf(new URL(via ?? url));
  if (isIP(host) !== 0) return notice;
  const name = `${host}, the name of ${via === null ? server : 'the proxy'},`;
  try {
    const { address } = await lookup(host);
    return [...notice, ok(`${name} resolves to ${address}`)];
  } catch (error) {
    const advice = 'check the name, and the name servers of this machine (/etc/resolv.conf)';
    return [...notice, fail(`${name} does not resolve: ${formatReason(error)}`, advice)];
  }
}
