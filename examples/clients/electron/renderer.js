document.querySelector('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const licenseKey = new FormData(event.target).get('key');
  const { verdict, reason } = await window.license.verify(licenseKey);
  const uses = verdict === 'valid' ? `, use ${await window.license.use(licenseKey)}` : '';
  document.querySelector('p').textContent = `${verdict}${reason === null ? '' : `: ${reason}`}${uses}`;
});
