import { posix } from 'node:path';
import { CommandError } from '../../../cli/command.ts';
import type { ServiceOptions } from './systemd-unit.ts';

/** A service of Windows or macOS, and the folders of the user for whom it is. */
export interface XmlServiceOptions extends ServiceOptions {
  /** Null if that is a user of another machine. */
  readonly home: string | null;
  /** On Windows, with the domain: `DESK\ada`. */
  readonly userName: string | null;
}

const description = 'License verification for your software';

/** The state directory of a service of the machine. WinSW inserts the variable. */
const windowsState = String.raw`%ProgramData%\Latchkey`;
/** Windows has an account for each service. */
const windowsAccount = String.raw`NT SERVICE\latchkey`;
const macState = '/Library/Application Support/Latchkey';
/** The user of a service of the machine. On macOS, names of such users begin with `_`. */
const macUser = '_latchkey';
const macLogs = '/Library/Logs/Latchkey';

/** Writes the file that WinSW 2 or 3 (https://github.com/winsw/winsw) reads. */
export function formatWinswService(options: XmlServiceOptions): string {
  const { program, stateDir } = options;
  const [executable = ''] = program;
  const state = escapeXml(stateDir ?? windowsState);
  const words = (name: string, command: string): string =>
    commandLine(options, command)
      .slice(1)
      .map((word) => `  <${name}>${escapeXml(word)}</${name}>`)
      .join('\n');
  return `<service>
  <id>latchkey</id>
  <name>Latchkey</name>
  <description>${description}</description>
  <startmode>Automatic</startmode>
  <executable>${escapeXml(executable)}</executable>
${words('startargument', 'serve')}
${words('stopargument', 'stop')}
  <stoptimeout>20 sec</stoptimeout>
  <env name="STATE_DIRECTORY" value="${windowsState}"/>
  <workingdirectory>${state}</workingdirectory>
  <logpath>${state}\\logs</logpath>
  <log mode="roll-by-size">
    <sizeThreshold>10240</sizeThreshold>
    <keepFiles>8</keepFiles>
  </log>
  <onfailure action="restart" delay="2 sec"/>
  <onfailure action="restart" delay="10 sec"/>
  <onfailure action="restart" delay="60 sec"/>
  <resetfailure>1 hour</resetfailure>
  <!-- WinSW does not know the service's own account, which has fewer rights. After the installation, use that:
       sc.exe config latchkey obj= "${windowsAccount}" -->
  <serviceaccount>
    <!-- WinSW 2 reads domain and user, WinSW 3 reads username. -->
    <domain>NT AUTHORITY</domain>
    <user>LocalService</user>
    <username>NT AUTHORITY\\LocalService</username>
  </serviceaccount>
</service>
`;
}

/** Writes a task of Windows' Task Scheduler that starts the daemon when this user logs on. */
export function formatScheduledTask(options: XmlServiceOptions): string {
  const [command = '', ...words] = commandLine(options, 'serve');
  const user = options.userName === null ? '' : `\n      <UserId>${escapeXml(options.userName)}</UserId>`;
  // Without an encoding, a redirection of any PowerShell or of cmd.exe writes a file that can be read.
  return `<Task version="1.3" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>${description}</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>${user}
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">${user}
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <IdleSettings>
      <StopOnIdleEnd>false</StopOnIdleEnd>
      <RestartOnIdle>false</RestartOnIdle>
    </IdleSettings>
    <Hidden>true</Hidden>
    <!-- No limit: Windows would end the daemon after three days. -->
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>255</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>${escapeXml(command)}</Command>
      <Arguments>${escapeXml(words.map(quoteArgument).join(' '))}</Arguments>
    </Exec>
  </Actions>
</Task>
`;
}

/** Writes a job of launchd: a LaunchDaemon of the machine, or a LaunchAgent of a user. */
export function formatLaunchdJob(options: XmlServiceOptions): string {
  const { scope, home } = options;
  const logs = scope === 'system' ? macLogs : home && posix.join(home, 'Library/Logs/Latchkey');
  const members: readonly (readonly [key: string, value: string])[] = [
    ['Label', text('latchkey')],
    ['ProgramArguments', `<array>\n${lines(commandLine(options, 'serve').map(text))}\n  </array>`],
    ['RunAtLoad', '<true/>'],
    // Not after `latchkey stop`, which ends the daemon with success.
    ['KeepAlive', '<dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>'],
    ['ExitTimeOut', '<integer>20</integer>'],
    // Octal 077: files are for this user alone.
    ['Umask', '<integer>63</integer>'],
    ...(logs === null
      ? []
      : (['StandardOutPath', 'StandardErrorPath'] as const).map(
          (key) => [key, text(`${logs}/latchkey.log`)] as const,
        )),
    ...(scope === 'user'
      ? []
      : ([
          ['UserName', text(macUser)],
          [
            'EnvironmentVariables',
            `<dict>\n    <key>STATE_DIRECTORY</key>\n    ${text(macState)}\n  </dict>`,
          ],
        ] as const)),
  ];
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
${members.map(([key, value]) => `  <key>${key}</key>\n  ${value}`).join('\n')}
</dict>
</plist>
`;
}

/** Whether a service of the machine that this file wrote is for the daemon of a state directory. */
export function isXmlServiceFor(xml: string, stateDir: string): boolean {
  const folder = process.env['ProgramData'] ?? String.raw`C:\ProgramData`;
  const value = `>${escapeXml(stateDir)}<`.toLowerCase();
  return xml.replaceAll('%ProgramData%', folder).toLowerCase().includes(value);
}

/** The words of a command of the service. Node gets the options that the systemd unit has in NODE_OPTIONS. */
function commandLine({ program, config, stateDir }: ServiceOptions, command: string): readonly string[] {
  const [first = '', ...script] = program;
  const forNode = script.length === 0 ? [] : ['--disable-sigusr1', '--max-semi-space-size=4'];
  return [
    first,
    ...forNode,
    ...script,
    command,
    ...(config === null ? [] : ['--config', config]),
    ...(stateDir === null ? [] : ['--state-dir', stateDir]),
  ];
}

/** Quotes a word as programs of Windows read it. Paths there have no quotation marks. */
function quoteArgument(word: string): string {
  return /\s/.test(word) ? `"${word.replace(/(?<!\\)\\+$/, '$&$&')}"` : word;
}

function text(value: string): string {
  return `<string>${escapeXml(value)}</string>`;
}

function lines(values: readonly string[]): string {
  return values.map((value) => `    ${value}`).join('\n');
}

function escapeXml(value: string): string {
  if (/\p{Cc}/u.test(value)) {
    throw new CommandError([
      `latchkey: ${JSON.stringify(value)} has a control character, which XML cannot have`,
    ]);
  }
  const entities: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
  };
  return value.replaceAll(/[&<>"]/g, (character) => entities[character] ?? character);
}
