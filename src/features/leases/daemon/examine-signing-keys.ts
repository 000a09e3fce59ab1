import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Configuration, signingDirectoryOf } from '../../../config/configuration.ts';
import { type Finding, type Hint, fail, ok, warn } from '../../../domain/finding.ts';
import { formatDatetime } from '../../../domain/time.ts';
import { readPrivateKey, thumbprintOf } from '../documents.ts';
import { keyEndsSoonMs } from '../domain/lease.ts';
import {
  readSigningDirectory,
  signerOf,
  type SigningDirectory,
  type SigningKey,
} from '../issuer/signing-keys.ts';
import type { PublicJwk } from '../wire/lease.ts';
import { examineWindowsDirectory } from '../../../daemon/doctor/files.ts';

const otherUsers = 0o077;
/** A file with a key is smaller. */
const maxKeyBytes = 16 * 1024;

/** Examines the signing directory of an issuer. Changes nothing. */
export async function examineSigningKeys(configuration: Configuration, hint: Hint): Promise<Finding[]> {
  const directory = signingDirectoryOf(configuration);
  const contents = await readSigningDirectory(directory);
  const faults = contents.faults.map((fault) =>
    fail(`signing directory ${directory}: ${fault}`, 'correct that; a running daemon needs no restart'),
  );
  return [
    ...examineRights(directory, configuration.stateDir),
    ...faults,
    ...(contents.statement === null && faults.length > 0 ? [] : examineSigner(contents, hint)),
    ...contents.keys.flatMap((key) => examineKey(key, directory)),
    ...(await findRootKeys(placesBeside(configuration.stateDir, directory), contents.roots)),
  ];
}

/** Examines who can read the keys, and whether the daemon can: it runs as the owner of the state directory. */
function examineRights(directory: string, stateDir: string): Finding[] {
  if (process.platform === 'win32') return examineWindowsDirectory(directory);
  try {
    const files = readdirSync(directory).map((name) => join(directory, name));
    // What is directly in the state directory is examined with it.
    const paths = dirname(directory) === stateDir ? files : [directory, ...files];
    const user = statSync(stateDir, { throwIfNoEntry: false })?.uid;
    return paths.flatMap((path) => {
      const { mode, uid } = statSync(path);
      if ((mode & otherUsers) !== 0 && !path.endsWith('.pub.jwk')) {
        const chmod = path === directory ? '0700' : '0600';
        return [fail(`${path} is accessible to other users`, `chmod ${chmod} ${path}`)];
      }
      if (uid === user || user === undefined) return [];
      return [
        fail(`${path} belongs to user ${uid}, and the daemon runs as user ${user}`, `chown ${user} ${path}`),
      ];
    });
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) return [];
    throw error;
  }
}

function examineSigner(contents: SigningDirectory, hint: Hint): Finding[] {
  const { statement } = contents;
  if (statement === null) {
    return [warn('leases are not set up, but a setup was begun', `repeat it: ${hint('lease setup')}`)];
  }
  const now = Date.now();
  const signer = signerOf(contents, now);
  const add = `make the next key: ${hint('lease signing-key rotate --root FILE')}`;
  if (signer === null) {
    const what = `no key of the key statement (version ${statement.version}) can sign here: devices get no leases`;
    return [fail(what, add)];
  }
  const end = formatDatetime(signer.notAfter);
  if (signer.notAfter - now < keyEndsSoonMs) return [warn(`the last signing key ends soon, on ${end}`, add)];
  return [ok(`leases are signed for ${signer.issuer}; the signing key is valid until ${end}`)];
}

function examineKey({ kid, notAfter, pair }: SigningKey, directory: string): Finding[] {
  if (notAfter === null) {
    const advice = `delete ${join(directory, `${kid}.jwk`)}`;
    return [warn(`the signing key ${kid} is not in the key statement`, advice)];
  }
  if (pair !== null || notAfter <= Date.now()) return [];
  return [
    warn(`the private key of the signing key ${kid} is not here`, 'bring its file here, or retire the key'),
  ];
}

function placesBeside(stateDir: string, directory: string): readonly string[] {
  const near = [stateDir, directory, dirname(stateDir), dirname(directory)];
  return [...new Set([...near, ...near.map((place) => join(place, 'roots'))])];
}

/** Finds private root keys, which are kept offline. */
async function findRootKeys(places: readonly string[], roots: readonly PublicJwk[]): Promise<Finding[]> {
  const known = new Set(roots.map(thumbprintOf));
  const findings: Finding[] = [];
  for (const path of places.flatMap(keyFilesIn)) {
    const pair = await readPrivateKey(readText(path));
    if (pair !== null && known.has(pair.kid)) {
      const advice = 'move it to two places offline: anyone who reads it can sign licenses in your name';
      findings.push(warn(`${path} is a private root key`, advice));
    }
  }
  return findings;
}

function keyFilesIn(directory: string): string[] {
  try {
    const names = readdirSync(directory).filter(
      (name) => name.endsWith('.jwk') && !name.endsWith('.pub.jwk'),
    );
    return names.map((name) => join(directory, name));
  } catch {
    return [];
  }
}

function readText(path: string): string {
  try {
    const status = statSync(path);
    return status.isFile() && status.size <= maxKeyBytes ? readFileSync(path, 'utf8') : '';
  } catch {
    return '';
  }
}
