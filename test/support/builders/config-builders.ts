import type { Configuration } from '../../../src/config/configuration.ts';
import { formatConfigError } from '../../../src/config/errors.ts';
import { parseConfiguration } from '../../../src/config/load.ts';
import type { LocalFile } from '../../../src/config/file/configuration-file.ts';
import type { Sources } from '../../../src/config/source.ts';
import { certificate } from '../network/certificate.ts';

/** The folder of the configuration file that `configSources` names. */
export const folder = '/srv/latchkey';

export interface ConfigInput {
  /** The text of the configuration file; it is named on the command line. */
  readonly text?: string;
  readonly flags?: Sources['flags'];
  readonly environment?: Sources['environment'];
  /** Further files by path; a value of an `Error` is thrown. */
  readonly files?: Readonly<Record<string, string | Error>>;
  /** The file that the command line names. */
  readonly file?: string;
  /** The files that every user of the machine can read. */
  readonly worldReadable?: readonly string[];
  readonly platform?: NodeJS.Platform;
  /** Whether the file in the working directory is trusted; it is by default. */
  readonly local?: LocalFile;
}

/** The certificate files of every test machine. */
const certificates = { '/etc/ca.pem': certificate, '/srv/ca.pem': certificate };

/** Sources on a machine with only these files. */
export function configSources(what: ConfigInput = {}): Sources {
  const {
    text,
    flags,
    environment = {},
    files = {},
    file,
    worldReadable = [],
    platform = 'linux',
    local = 'safe',
  } = what;
  const isWindows = platform === 'win32';
  const path = isWindows ? String.raw`C:\srv\latchkey\config.yaml` : `${folder}/config.yaml`;
  const all: ConfigInput['files'] = {
    ...certificates,
    ...files,
    ...(text !== undefined && { [path]: text }),
  };
  return {
    file: text === undefined ? file : path,
    flags,
    environment,
    home: isWindows ? String.raw`C:\Users\ada` : '/home/ada',
    platform,
    directory: isWindows ? String.raw`C:\work` : '/work',
    checkLocalFile: (name) => (all[name] === undefined ? 'absent' : local),
    isReadableByOthers: (name) => worldReadable.includes(name),
    readFile: (name) => {
      const content = all[name] ?? absent();
      if (typeof content === 'string') return content;
      throw content;
    },
  };
}

/** The error of a file that does not exist. */
function absent(): Error {
  return Object.assign(new Error('ENOENT'), { code: 'ENOENT', errno: -2 });
}

/** The error of a file that this user cannot read. */
export function denied(): Error {
  return Object.assign(new Error('EACCES'), { code: 'EACCES', errno: -13 });
}

/** The error of a path through a file that is not a directory. */
export function notADirectory(): Error {
  return Object.assign(new Error('ENOTDIR'), { code: 'ENOTDIR', errno: -20 });
}

/** The configuration of valid sources. */
export function configurationOf(what: ConfigInput = {}): Configuration {
  const result = parseConfiguration(configSources(what));
  if (!result.ok) throw new Error(result.errors.map(formatConfigError).join('\n'));
  return result.configuration;
}

/** The lines of the error report; empty if the sources are valid. */
export function errorsOf(what: ConfigInput): readonly string[] {
  const result = parseConfiguration(configSources(what));
  return result.ok ? [] : result.errors.map(formatConfigError);
}

/** The warnings that a start logs. Throws if the sources are invalid. */
export function warningsOf(what: ConfigInput): readonly string[] {
  const result = parseConfiguration(configSources(what));
  if (!result.ok) throw new Error(result.errors.map(formatConfigError).join('\n'));
  return result.warnings.map(formatConfigError);
}
