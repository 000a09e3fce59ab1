import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installClient } from '../process/installed-client.ts';
import { patienceMs } from '../patience.ts';

const run = promisify(execFile);
const folder = join(import.meta.dirname, '../../../examples/clients');
/** The folder in which `.ci/run` installs Python libraries. */
const pythonLibraries = join(import.meta.dirname, '../../../node_modules/.python');
/** All tests share the compiled crates. */
const cargoTarget = join(import.meta.dirname, '../../../node_modules/.cargo-target');
/** The folder in which `.ci/run` puts Java libraries. */
const javaLibraries = join(import.meta.dirname, '../../../node_modules/.java');

/** A public key of which a program needs the point. */
export interface RootKey {
  readonly x: string;
  readonly y: string;
}

type Command = readonly [string, ...string[]];

/** A change of a file in which `text` is once. */
interface Edit {
  readonly file: string;
  readonly text: string;
  readonly replacement: string;
}

/** One of the programs in `examples/clients`. */
export interface ClientExample {
  readonly name: string;
  /** Whether the program also supports Unix sockets. */
  readonly hasSocket: boolean;
  /** Commands that must succeed for the program to run here. */
  readonly needs: readonly Command[];
  /** Where the root keys are compiled in: a file, its text without root keys, and the text with them. The file also names the issuer and the product of `exampleTrust`. */
  readonly roots: {
    readonly file: string;
    readonly empty: string;
    readonly filled: (keys: readonly RootKey[]) => string;
  };
  /** Where the program makes its nonce, and the text that makes it empty; null: a library makes the nonce. */
  readonly nonce: Edit | null;
  /** Builds the program in a copy of its folder; returns its command. */
  readonly build: (directory: string) => Promise<Command>;
}

const python: Command = ['python3', '-c', 'import jwt, cryptography'];

/** The points of keys, each as a text of `pair`, which has the placeholders X and Y. */
function pairs(keys: readonly RootKey[], pair: string): string {
  return keys.map(({ x, y }) => pair.replaceAll(/[XY]/g, (name) => (name === 'X' ? x : y))).join(', ');
}

/**
 * Mono sometimes aborts or hangs for a minute at shutdown (mono/mono#21493); this code exits before. Mono has no ECDSA; this
 * code calls OpenSSL.
 */
const quickExit = `
using System;
using System.Runtime.InteropServices;
using System.Security.Cryptography;
static class QuickExit
{
    const string Crypto = "libcrypto.so.3";
    [DllImport("libc")] static extern void _exit(int code);
    [DllImport(Crypto)] static extern IntPtr EC_KEY_new_by_curve_name(int name);
    [DllImport(Crypto)] static extern int EC_KEY_set_public_key_affine_coordinates(IntPtr key, IntPtr x, IntPtr y);
    [DllImport(Crypto)] static extern IntPtr BN_bin2bn(byte[] bytes, int length, IntPtr into);
    [DllImport(Crypto)] static extern IntPtr ECDSA_SIG_new();
    [DllImport(Crypto)] static extern int ECDSA_SIG_set0(IntPtr signature, IntPtr r, IntPtr s);
    [DllImport(Crypto)] static extern int ECDSA_do_verify(byte[] hash, int length, IntPtr signature, IntPtr key);
    const int P256 = 415;
    static IntPtr Number(byte[] bytes, int from, int length)
    {
        byte[] part = new byte[length];
        Array.Copy(bytes, from, part, 0, length);
        return BN_bin2bn(part, length, IntPtr.Zero);
    }
    static bool HasSigned(ECParameters parameters, byte[] signed, byte[] bytes)
    {
        IntPtr key = EC_KEY_new_by_curve_name(P256), signature = ECDSA_SIG_new();
        ECPoint point = parameters.Q;
        if (EC_KEY_set_public_key_affine_coordinates(key, Number(point.X, 0, point.X.Length), Number(point.Y, 0, point.Y.Length)) != 1) return false;
        ECDSA_SIG_set0(signature, Number(bytes, 0, 32), Number(bytes, 32, 32));
        byte[] hash = SHA256.Create().ComputeHash(signed);
        return ECDSA_do_verify(hash, hash.Length, signature, key) == 1;
    }
    static void Main(string[] args)
    {
        Lease.HasSigned = HasSigned;
        _exit(LicenseCheck.Main(args));
    }
}
`;

/** The literals of JavaScript and Python are those of JSON. */
const asJson = (keys: readonly RootKey[]) =>
  JSON.stringify(keys.map(({ x, y }) => ({ kty: 'EC', crv: 'P-256', x, y })));

export const clientExamples: readonly ClientExample[] = [
  {
    name: 'node',
    roots: { file: 'lease.js', empty: 'roots: []', filled: (keys) => `roots: ${asJson(keys)}` },
    nonce: null,
    hasSocket: true,
    needs: [],
    async build(directory) {
      await installClient(directory);
      return [process.execPath, join(directory, 'license-check.js')];
    },
  },
  {
    name: 'python',
    roots: { file: 'lease.py', empty: 'ROOTS = []', filled: (keys) => `ROOTS = ${asJson(keys)}` },
    nonce: { file: 'license_check.py', text: 'nonce = secrets.token_urlsafe(32)', replacement: 'nonce = ""' },
    hasSocket: true,
    needs: [python],
    build: async (directory) => ['python3', join(directory, 'license_check.py')],
  },
  {
    name: 'python-async',
    roots: { file: 'lease.py', empty: 'ROOTS = []', filled: (keys) => `ROOTS = ${asJson(keys)}` },
    nonce: { file: 'license_check.py', text: 'nonce = secrets.token_urlsafe(32)', replacement: 'nonce = ""' },
    hasSocket: true,
    needs: [python, ['python3', '-c', 'import aiohttp']],
    build: async (directory) => ['python3', join(directory, 'license_check.py')],
  },
  {
    name: 'go',
    roots: {
      file: 'lease.go',
      empty: '[]jwk{}',
      filled: (keys) => `[]jwk{${pairs(keys, '{"P-256", "EC", "X", "Y"}')}}`,
    },
    nonce: { file: 'main.go', text: 'nonce := newKey()', replacement: 'nonce := ""' },
    hasSocket: true,
    needs: [['go', '-C', join(folder, 'go'), 'mod', 'download']],
    async build(directory) {
      await make(['go', 'build', '-o', 'program', '.'], directory);
      return [join(directory, 'program')];
    },
  },
  {
    name: 'rust',
    roots: { file: 'src/lease.rs', empty: '&[]', filled: (keys) => `&[${pairs(keys, '["X", "Y"]')}]` },
    nonce: { file: 'src/main.rs', text: 'let nonce = random();', replacement: 'let nonce = String::new();' },
    hasSocket: true,
    needs: [
      ['cargo', '--version'],
      ['pkg-config', '--exists', 'libcurl'],
      ['flock', '--version'],
    ],
    async build(directory) {
      await mkdir(cargoTarget, { recursive: true });
      // A copy that is older than the last build of another copy looks built to cargo.
      const build =
        'touch src/main.rs && CARGO_PROFILE_DEV_DEBUG=0 cargo build --quiet --target-dir "$0" && cp "$0/debug/license-check" program';
      await make(['flock', join(cargoTarget, 'lock'), 'sh', '-c', build, cargoTarget], directory);
      return [join(directory, 'program')];
    },
  },
  {
    name: 'java',
    roots: {
      file: 'src/main/java/Lease.java',
      empty: 'ROOTS = {}',
      filled: (keys) => `ROOTS = {${pairs(keys, '{"X", "Y"}')}}`,
    },
    nonce: {
      file: 'src/main/java/LicenseCheck.java',
      text: 'nonce = UUID.randomUUID().toString();',
      replacement: 'nonce = "";',
    },
    hasSocket: false,
    needs: [
      ['javac', '--version'],
      ['test', '-e', join(javaLibraries, 'nimbus-jose-jwt.jar')],
    ],
    async build(directory) {
      const sources = ['LicenseCheck', 'Lease'].map((name) => `src/main/java/${name}.java`);
      const libraries = join(javaLibraries, '*');
      await make(['javac', '--release', '17', '-cp', libraries, '-d', 'classes', ...sources], directory);
      const path = `${join(directory, 'classes')}:${libraries}`;
      return ['java', '-XX:TieredStopAtLevel=1', '-cp', path, 'LicenseCheck'];
    },
  },
  {
    name: 'csharp',
    roots: {
      file: 'Lease.cs',
      empty: 'Roots = { }',
      filled: (keys) => `Roots = {${pairs(keys, 'new[] { "X", "Y" }')}}`,
    },
    nonce: {
      file: 'LicenseCheck.cs',
      text: 'nonce = Guid.NewGuid().ToString();',
      replacement: 'nonce = "";',
    },
    hasSocket: false,
    needs: [
      ['mcs', '--version'],
      ['mono', '--version'],
      ['sh', '-c', 'gacutil -l System.Runtime.Serialization | grep -q Version='],
    ],
    async build(directory) {
      await writeFile(join(directory, 'QuickExit.cs'), quickExit);
      const libraries = '-r:System.Core,System.Net.Http,System.Runtime.Serialization,System.Xml';
      const sources = ['-main:QuickExit', 'LicenseCheck.cs', 'Lease.cs', 'QuickExit.cs'];
      await make(['mcs', libraries, '-out:program.exe', ...sources], directory);
      return ['mono', join(directory, 'program.exe')];
    },
  },
  {
    name: 'c',
    roots: { file: 'lease.c', empty: '{{NULL, NULL}}', filled: (keys) => `{${pairs(keys, '{"X", "Y"}')}}` },
    nonce: { file: 'license_check.c', text: 'make_random(nonce);', replacement: '*nonce = 0;' },
    hasSocket: true,
    needs: [
      ['cc', '--version'],
      ['pkg-config', '--exists', 'libcurl', 'libcjson', 'libcrypto'],
    ],
    async build(directory) {
      await make(['make'], directory);
      return [join(directory, 'license_check')];
    },
  },
  {
    name: 'php',
    roots: {
      file: 'lease.php',
      empty: 'ROOTS = []',
      filled: (keys) => `ROOTS = [${pairs(keys, "['X', 'Y']")}]`,
    },
    nonce: {
      file: 'license_check.php',
      text: '$nonce = bin2hex(random_bytes(16));',
      replacement: "$nonce = '';",
    },
    hasSocket: true,
    needs: [
      ['php', '-r', 'exit(extension_loaded("curl") ? 0 : 1);'],
      ['php', '-r', 'require "phpseclib3/autoload.php";'],
    ],
    build: async (directory) => ['php', join(directory, 'license_check.php')],
  },
  {
    name: 'lua',
    roots: {
      file: 'lease.lua',
      empty: 'roots = {}, --',
      filled: (keys) => `roots = { ${pairs(keys, '{ "X", "Y" }')} }, --`,
    },
    nonce: { file: 'license_check.lua', text: 'local nonce = new_key()', replacement: 'local nonce = ""' },
    hasSocket: false,
    needs: [['lua5.4', '-e', 'require("socket") require("cjson") require("openssl.pkey")']],
    build: async (directory) => ['lua5.4', join(directory, 'license_check.lua')],
  },
];

/** The missing requirement. Null: nothing is missing. */
export async function missingFor({ needs }: ClientExample): Promise<string | null> {
  for (const need of needs) {
    if (!(await succeeds(need))) return `${need.join(' ')} does not work here`;
  }
  return null;
}

/** The issuer and the product that the programs name until a vendor sets his own. */
export const exampleTrust = { issuer: 'https://licenses.example.com', product: 'RGsF' } as const;

/**
 * Builds a program in a folder of its own in `directory`; with root keys, it asks a holder for leases. `edits`: further
 * changes of its source.
 */
export async function buildExample(
  { name, build, roots: { file, empty, filled } }: ClientExample,
  directory: string,
  trust: { issuer: string; product: string; roots: readonly RootKey[] } | null = null,
  edits: readonly Edit[] = [],
): Promise<Command> {
  const copy = join(directory, name);
  await cp(join(folder, name), copy, { recursive: true });
  const trusting =
    trust === null
      ? []
      : [
          { file, text: empty, replacement: filled(trust.roots) },
          { file, text: exampleTrust.issuer, replacement: trust.issuer },
          { file, text: exampleTrust.product, replacement: trust.product },
        ];
  for (const edit of [...trusting, ...edits]) {
    const path = join(copy, edit.file);
    const source = await readFile(path, 'utf8');
    if (source.split(edit.text).length !== 2)
      throw new Error(`${name}/${edit.file} does not have "${edit.text}" once`);
    await writeFile(
      path,
      source.replace(edit.text, () => edit.replacement),
    );
  }
  return await build(copy);
}

/** Runs a program, which is killed if it hangs; returns its output and exit code. */
export async function runExample(
  [program, ...options]: Command,
  given: readonly string[],
  environment: Record<string, string> = {},
): Promise<{ stdout: string; stderr: string; code: number | null }> {
  const running = {
    env: { ...surroundings(), ...environment },
    timeout: patienceMs,
    killSignal: 'SIGKILL',
  } as const;
  return await run(program, [...options, ...given], running)
    .then((ran) => ({ ...ran, code: 0 }))
    .catch((error: unknown) => error as { stdout: string; stderr: string; code: number | null });
}

function surroundings(): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, PYTHONPATH: pythonLibraries, GOTOOLCHAIN: 'local' };
}

async function succeeds([program, ...options]: Command): Promise<boolean> {
  return await run(program, options, { env: surroundings() }).then(
    () => true,
    () => false,
  );
}

async function make([program, ...options]: Command, directory: string): Promise<void> {
  await run(program, options, { cwd: directory, env: surroundings() });
}
