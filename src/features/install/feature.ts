import { commandGroup, helpLine } from '../../cli/command.ts';
import type { Feature } from '../../feature.ts';

/** Sets Latchkey up on a machine: a configuration, a service, a certificate, the shell and the manual. */
export const install: Feature = {
  name: 'install',
  commands: [
    { name: 'init', load: async () => (await import('./init.ts')).command },
    commandGroup('service', 'Run the daemon as a service of the system', () => import('./service.ts')),
    commandGroup('certificate', 'Create a certificate for listen.tls', () => import('./certificate.ts')),
    commandGroup('completion', 'Let the shell complete commands', () => import('./completion.ts')),
    { name: 'man', load: async () => (await import('./man.ts')).command },
  ],
  help: {
    Run: [
      helpLine('init', 'Create a configuration step by step'),
      helpLine('service certificate', 'Run it as a system service; make a certificate'),
    ],
    'Look after': [helpLine('man completion', 'The manual page; complete commands in the shell')],
  },
  startCommand: async (stateDir) =>
    (await import('./system-service/service-file.ts')).startCommandOf(stateDir),
};
