import { ok } from '../../../domain/finding.ts';
import type { DoctorObject } from '../wire/console.ts';
import { serializeStatus } from '../../../wire/status.ts';
import type { Daemon } from '../../../daemon/daemon.ts';
import { examine } from '../../../daemon/doctor/examination.ts';
import { examineReadiness, examineStatus } from '../../../daemon/doctor/status.ts';
import type { OpenedStore } from '../../../daemon/store/opened-store.ts';

/** Examines this process, its files, its database and its upstream, as the command `doctor` does. */
export async function examineSelf({ current, instance }: OpenedStore, daemon: Daemon): Promise<DoctorObject> {
  const { configuration, source } = current;
  const { state, reasons } = daemon.readiness();
  const status = serializeStatus(await daemon.status());
  const findings = [
    ok(`the configuration is in effect: ${source?.file ?? 'no file'} (${configuration.role})`),
    examineReadiness({ isReady: state === 'ready', reasons }, hint),
    ...examineStatus(status, hint, configuration.sync.maxPending),
    ...(await examine({
      configuration,
      secretFiles: source?.secretFiles ?? [],
      fileWithSecrets: source?.fileWithSecrets ?? null,
      presence: 'running',
      instance,
      shownUntil: status.listeners.tls?.not_after ?? null,
      hint,
      start: hint('serve'),
    })),
  ];
  return { ok: findings.every(({ level }) => level !== 'fail'), findings };
}

function hint(words: string): string {
  return `latchkey ${words}`;
}
