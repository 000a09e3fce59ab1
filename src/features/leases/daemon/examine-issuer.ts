import { z } from 'zod';
import type { Configuration } from '../../../config/configuration.ts';
import { readCertificates } from '../../../config/file/certificates.ts';
import { readNamedFile } from '../../../config/file/named-file.ts';
import type { LeaseSettings } from '../config/leases.ts';
import { readRootKey } from '../config/root-key.ts';
import { type Finding, fail, ok, warn } from '../../../domain/finding.ts';
import { heldVerdict, warningOf } from '../domain/held-lease.ts';
import type { HeldLease } from '../domain/lease.ts';
import { counted } from '../../../domain/text.ts';
import { formatDatetime } from '../../../domain/time.ts';
import { readStatement } from '../documents.ts';
import { examineStored } from '../holder/stored-documents.ts';
import { boundDevice } from '../service/held-lease.ts';
import { openReading } from '../../../store/sqlite/connection.ts';
import { findDatabase } from '../../../store/sqlite/files/database-file.ts';
import { databaseIn } from '../../../store/sqlite/files/state-directory.ts';
import { type CertificateFault, certificateFaultOf } from '../../../domain/connection-failure.ts';
import { keysObject, type PublicJwk } from '../wire/lease.ts';
import { connectToIssuer, proxyToIssuer } from './holder.ts';
import { examineHostName } from '../../../daemon/doctor/upstream.ts';

/** Examines the issuer of a holder: its name, its certificate and its keys; and the leases that are held. Changes nothing. */
export async function examineIssuer(configuration: Configuration): Promise<Finding[]> {
  const { leases, stateDir } = configuration;
  const roots = examineRoots(leases);
  const trust = examineCaFile(leases);
  const findings = [
    ...roots.findings,
    ...trust,
    ...(await examineHostName('the issuer', leases.issuer ?? '', proxyToIssuer(leases))),
  ];
  const isUsable = [...roots.findings, ...trust].every(({ level }) => level !== 'fail');
  return [
    ...findings,
    ...(isUsable ? await examineStatement(leases, roots.keys) : []),
    ...(await examineLeases(stateDir, roots.keys)),
  ];
}

function examineRoots({ roots }: LeaseSettings): { keys: PublicJwk[]; findings: Finding[] } {
  const keys: PublicJwk[] = [];
  const findings = roots.flatMap((path) => {
    const read = readRootKey(path, readNamedFile);
    if (!read.ok) return [fail(read.text, 'get the public root keys from the vendor')];
    keys.push(read.key);
    return [];
  });
  const all = counted(keys.length, 'public root key');
  return { keys, findings: findings.length > 0 ? findings : [ok(`${all} of the vendor can be read`)] };
}

function examineCaFile({ caFile }: LeaseSettings): Finding[] {
  if (caFile === null) return [];
  const read = readCertificates(caFile, readNamedFile);
  return read.ok ? [ok(`${caFile} can be read`)] : [fail(read.text, 'correct leases.ca_file')];
}

const certificateAdvice: Readonly<Record<CertificateFault, string>> = {
  expired: 'the vendor must renew it, unless the clock of this machine is wrong',
  untrusted: 'set leases.ca_file to the certificate of the authority that signed the one of the issuer',
  foreign: 'another server answers there: check leases.issuer',
};

const keysAnswer = z.object({ data: keysObject });

/** Asks for the key statement, which needs no license key. */
async function examineStatement(leases: LeaseSettings, roots: readonly PublicJwk[]): Promise<Finding[]> {
  const { issuer } = leases;
  await using endpoint = connectToIssuer(leases);
  const reply = await endpoint.statement(new AbortController().signal);
  if (reply.kind === 'failed') {
    const fault = reply.error === undefined ? null : certificateFaultOf(reply.error);
    const advice =
      fault === null
        ? 'check leases.issuer, leases.proxy, and the firewall of this machine; leases stay valid until they expire'
        : certificateAdvice[fault];
    return [fail(`the issuer ${issuer} cannot be reached: ${reply.detail}`, advice)];
  }
  const read = keysAnswer.safeParse(reply.body);
  if (!read.success) {
    const what = `${issuer} answers HTTP ${reply.status}, and not with the keys of an issuer`;
    return [fail(what, 'check leases.issuer; the vendor may not have set up leases yet')];
  }
  const statement = await readStatement(read.data.data.keys, roots);
  const advice = 'get leases.issuer and the public root keys from the vendor again';
  if (!statement.ok) return [fail(`the key statement of ${issuer}: ${statement.problem.detail}`, advice)];
  const { version, issuer: named } = statement.value;
  return named === issuer
    ? [ok(`the issuer ${issuer} answers; a root key of the vendor has signed its keys (version ${version})`)]
    : [fail(`the server at ${issuer} issues leases for ${named}`, 'set leases.issuer to that name')];
}

/** `roots`: those that can be read. */
async function examineLeases(stateDir: string, roots: readonly PublicJwk[]): Promise<Finding[]> {
  const path = databaseIn(stateDir);
  if (!findDatabase(path)) return [];
  using connection = openReading(path);
  const { reader } = connection;
  const device = boundDevice(reader);
  // Without root keys nothing can be checked, and another finding says so.
  const { corrections } =
    device === null || roots.length === 0
      ? { corrections: [] }
      : await examineStored(reader, { roots, device });
  const proven = new Map(corrections.map((each) => [each.licenseKey, each]));
  const now = Date.now();
  return reader.heldLeases
    .all()
    .flatMap((held) => examineLease({ ...held, ...proven.get(held.licenseKey) }, now));
}

/** The finding does not contain the license key, since people send the output to others. */
function examineLease(held: HeldLease, now: number): Finding[] {
  const { document, activationId } = held;
  if (document === null || document.kind === 'notice' || held.wanted === 'ended') return [];
  const of = `the lease of activation ${activationId}`;
  const advice = 'make the issuer reachable, or bring a lease as a file (latchkey lease request)';
  if (document.kind === 'unproven') return [fail(`${of} is not proven: ${document.fault}`, advice)];
  const end = formatDatetime(document.expiresAt);
  if (heldVerdict(held, now).verdict === 'expired') return [fail(`${of} expired on ${end}`, advice)];
  return warningOf(held, now) === null
    ? [ok(`${of} is valid until ${end}`)]
    : [warn(`${of} could not be renewed, and expires on ${end}`, advice)];
}
